"""Datasets: the list, freezing, frozen versions and their download."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from webapp.forms.dataset import FreezeForm
from webapp.forms.filters import EnvironmentFilterForm, read_filter
from webapp.http import Request, allow, answer, stream
from webapp.models import DatasetVersion, Role
from webapp.selectors import datasets
from webapp.services import datasets as dataset_services
from webapp.services import exports
from webapp.services.errors import InvalidInput


@allow(Role.VIEWER)
def dataset_list(request: Request) -> HttpResponseBase:
    """All datasets with their frozen versions."""
    return answer(request, "webapp/datasets.html", {"datasets": datasets.list_datasets()[:200]})


@allow(Role.VIEWER)
def dataset(request: Request, slug: str) -> HttpResponseBase:
    """One dataset and its versions."""
    return answer(request, "webapp/dataset.html", {"dataset": datasets.get_dataset(slug)})


@allow(Role.CURATOR, "GET", "HEAD", "POST")
def dataset_freeze(request: Request) -> HttpResponseBase:
    """Choose approved environments and freeze them as a version."""
    chosen = read_filter(request.GET)
    matching = datasets.freezable(chosen)
    form = FreezeForm(request.POST or None, initial={"name": request.GET.get("name", "")})
    form.offer(list(matching.values_list("pk", flat=True)))
    if request.method == "POST" and form.is_valid():
        try:
            version = _freeze(form, request)
            return redirect("dataset_version", slug=version.dataset.slug, number=version.number)
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
    context = {
        "form": form,
        "rows": matching[: datasets.MEMBER_ROWS],
        "count": len(form.offered),
        "on_host": datasets.count_on_host(matching),
        "chosen": chosen,
        "filters": EnvironmentFilterForm(request.GET),
        "ticked": request.POST.getlist("environments") if request.method == "POST" else None,
    }
    status = 422 if request.method == "POST" else 200
    return answer(request, "webapp/dataset_freeze.html", context, status=status)


def _freeze(form: FreezeForm, request: Request) -> DatasetVersion:
    said = form.cleaned_data
    return dataset_services.freeze(said["name"], said["environments"], request.user, said["notes"])


@allow(Role.VIEWER)
def dataset_version(request: Request, slug: str, number: int) -> HttpResponseBase:
    """A frozen version: members, digests, what it is made of."""
    version = datasets.get_version(slug, number)
    context = {
        "version": version,
        "members": datasets.members_of(version),
        "change": datasets.change_of(version),
    }
    return answer(request, "webapp/dataset_version.html", context)


@allow(Role.CURATOR)
def dataset_download(request: Request, slug: str, number: int) -> HttpResponseBase:
    """The version as a `.tar.gz` of Harbor folders, streamed."""
    version = datasets.get_version(slug, number)
    name = f"{slug}-v{number}.tar.gz"
    return stream(request, exports.open_archive(version), name, "application/gzip")
