"""Datasets: what may be frozen, what was frozen."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, Max, Prefetch, QuerySet
from django.db.models.fields.json import KT
from django.shortcuts import get_object_or_404

from webapp.lifecycle import ReviewStatus
from webapp.models import Dataset, DatasetMember, DatasetVersion, Environment
from webapp.models.trial import on_host_root
from webapp.selectors.environments import EnvironmentFilter, list_rows

MEMBER_ROWS = 200
"""So many rows are listed; the rest is there all the same."""


def list_datasets() -> QuerySet[Dataset]:
    """All datasets with their versions, newest version first."""
    versions = DatasetVersion.objects.select_related("frozen_by").defer("frozen")
    return (
        Dataset.objects.annotate(latest=Max("versions__frozen_at"))
        .prefetch_related(Prefetch("versions", queryset=versions.order_by("-number")))
        .order_by("name")
    )


def get_dataset(slug: str) -> Dataset:
    """The dataset with its versions, or 404."""
    return get_object_or_404(list_datasets(), slug=slug)


def get_version(slug: str, number: int) -> DatasetVersion:
    """A frozen version with the sentence that says what its verdicts rest on, or 404."""
    rows = (
        DatasetVersion.objects.select_related("dataset", "frozen_by")
        .defer("frozen")
        .annotate(basis=KT("frozen__basis"))
    )
    return get_object_or_404(rows, dataset__slug=slug, number=number)


def members_of(version: DatasetVersion) -> list[DatasetMember]:
    """The members in order of name, with their environments."""
    return list(
        version.members.select_related("environment", "environment__lineage")
        .defer(
            "environment__manifest",
            "environment__demands",
            "environment__sequence",
            "environment__instruction",
            "environment__root_instruction",
        )
        .order_by("name")[:MEMBER_ROWS]
    )


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What a version has beside the one before it, by digest. Lists hold the first rows only."""

    number: int
    """Of the version before."""

    came: int
    went: int
    came_digests: frozenset[str]
    gone: tuple[DatasetMember, ...]


def change_of(version: DatasetVersion) -> VersionChange | None:
    """Which members came and went; None for a first version."""
    if version.number == 1:
        return None
    old = DatasetMember.objects.filter(
        version__dataset=version.dataset_id, version__number=version.number - 1
    )
    new = version.members.all()
    came = new.exclude(digest__in=old.values("digest")).order_by("name")
    gone = old.exclude(digest__in=new.values("digest")).order_by("name")
    return VersionChange(
        version.number - 1,
        came.count(),
        gone.count(),
        frozenset(came.values_list("digest", flat=True)[:MEMBER_ROWS]),
        tuple(gone.only("name", "digest", "environment_id")[:MEMBER_ROWS]),
    )


def freezable(chosen: EnvironmentFilter) -> QuerySet[Environment]:
    """Approved environments that match, by lineage and place in it, with what verified them."""
    rows = list_rows().filter(chosen.query(), review=ReviewStatus.APPROVED)
    shown = rows.annotate(verified_by=F("current_verification__backend"))
    return shown.order_by("lineage_id", "path")


def count_on_host(rows: QuerySet[Environment]) -> int:
    """How many of these have a verdict from the host's own `/usr`, not from their image."""
    return rows.filter(on_host_root("current_verification__")).count()
