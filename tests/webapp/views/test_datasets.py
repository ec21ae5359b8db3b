"""Datasets: freezing, frozen versions, the download."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils.html import escape

from tests.webapp import builders
from tests.webapp.views.conftest import World
from webapp.models import DatasetVersion, Environment, Role, Verification


@pytest.fixture
def curator(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.CURATOR)


@pytest.fixture
def approved(world: World) -> World:
    valid = [world.child.pk, world.grandchild.pk]
    Environment.objects.filter(pk__in=valid).update(review="approved")
    return world


def test_only_approved_environments_are_offered(approved: World, curator: Client) -> None:
    rows = curator.get("/datasets/freeze/").context["rows"]
    assert [row.pk for row in rows] == [approved.child.pk, approved.grandchild.pk]
    narrowed = curator.get("/datasets/freeze/?direction=length").context["rows"]
    assert [row.pk for row in narrowed] == [approved.grandchild.pk]


def test_chosen_environments_are_frozen_under_their_digests(
    approved: World, curator: Client
) -> None:
    data = {"name": "Pilot", "notes": "first", "environments": [approved.child.pk]}
    response = curator.post("/datasets/freeze/", data)
    assert response.url == "/datasets/pilot/1/"
    page = curator.get(response.url)
    assert page.context["version"].digest in page.text
    assert [m.digest for m in page.context["members"]] == [approved.child.digest]
    again = curator.post("/datasets/freeze/", {**data, "environments": [approved.grandchild.pk]})
    assert again.url == "/datasets/pilot/2/"
    assert "version 2" in curator.get("/datasets/pilot/").text
    assert curator.get("/datasets/").status_code == 200


def test_a_version_says_what_came_and_went_since_the_one_before(
    approved: World, curator: Client
) -> None:
    both = [approved.child.pk, approved.grandchild.pk]
    for chosen in (both[:1], both[1:], both[1:]):
        curator.post("/datasets/freeze/", {"name": "Pilot", "environments": chosen})
    assert curator.get("/datasets/pilot/1/").context["change"] is None
    page = curator.get("/datasets/pilot/2/")
    change = page.context["change"]
    assert (change.came, change.went) == (1, 1)
    assert change.came_digests == {approved.grandchild.digest}
    assert [row.digest for row in change.gone] == [approved.child.digest]
    assert '<span class="tag">new</span>' in page.text
    assert "The same members as in" in curator.get("/datasets/pilot/3/").text


def test_all_that_match_are_frozen_listed_or_not(approved: World, curator: Client) -> None:
    response = curator.post("/datasets/freeze/", {"name": "All", "is_all": "1"})
    assert response.status_code == 302
    assert DatasetVersion.objects.get().member_count == 2
    part = curator.post("/datasets/freeze/?direction=length", {"name": "Part", "is_all": "1"})
    assert part.status_code == 302
    assert DatasetVersion.objects.get(dataset__slug="part").member_count == 1


def test_nothing_chosen_or_not_approved_is_refused(approved: World, curator: Client) -> None:
    for chosen in ([], [approved.invalid.pk], [10**9]):
        data = {"name": "Pilot", "environments": chosen}
        response = curator.post("/datasets/freeze/", data)
        assert response.status_code == 422
        assert response.context["form"].errors["environments"]
    nameless = curator.post(
        "/datasets/freeze/", {"name": "!!!", "environments": [approved.child.pk]}
    )
    assert nameless.status_code == 422
    assert not DatasetVersion.objects.exists()


def test_the_download_holds_every_member_and_its_own_checksums(
    approved: World, curator: Client
) -> None:
    curator.post("/datasets/freeze/", {"name": "Pilot", "is_all": "1"})
    response = curator.get("/datasets/pilot/1/download/")
    assert response.headers["Content-Disposition"] == 'attachment; filename="pilot-v1.tar.gz"'
    data = b"".join(response.streaming_content)  # type: ignore[arg-type]
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data))) as tar:
        names = tar.getnames()
    for member in DatasetVersion.objects.get().members.all():
        assert any(f"/{member.name}/instruction.md" in f"/{name}" for name in names)
    assert any(name.endswith("checksums.sha256") for name in names)
    assert any(name.endswith("manifest.json") for name in names)


def test_a_version_says_on_what_its_verdicts_rest(approved: World, curator: Client) -> None:
    assert "2 of 2 were verified on the host's /usr" in curator.get("/datasets/freeze/").text
    on_image = Verification.objects.filter(environment=approved.child)
    on_image.update(backend="bubblewrap-image, docker")
    assert "1 of 2 was verified on the host's /usr" in curator.get("/datasets/freeze/").text
    curator.post("/datasets/freeze/", {"name": "Mixed", "is_all": "1"})
    sentence = "1 environment was verified on the host's /usr, not on its image."
    assert escape(sentence) in curator.get("/datasets/mixed/1/").text
    on_image.update(backend="bubblewrap")  # what is frozen stays as it was
    frozen = DatasetVersion.objects.get(dataset__slug="mixed").frozen
    assert frozen["basis"] == sentence
    by_digest = {row["digest"]: row for row in frozen["environments"]}
    child, grandchild = by_digest[approved.child.digest], by_digest[approved.grandchild.digest]
    assert (child["verified_by"], child["is_verified_on_image"]) == (
        "bubblewrap-image, docker",
        True,
    )
    assert (grandchild["verified_by"], grandchild["is_verified_on_image"]) == ("bubblewrap", False)


def test_an_unknown_dataset_is_not_found(db: None, curator: Client) -> None:
    assert curator.get("/datasets/nothing/").status_code == 404
    assert curator.get("/datasets/nothing/1/").status_code == 404


def test_many_members_are_listed_in_part_and_counted_in_full(db: None, curator: Client) -> None:
    seed = builders.make_seed(0)
    children = [builders.light_child(seed, ordinal) for ordinal in range(230)]
    for child in children:
        child.verification, child.review = "valid", "approved"
    Environment.objects.bulk_create(children)
    response = curator.get("/datasets/freeze/")
    assert len(response.context["rows"]) == 200
    assert "all 230 that match" in response.text
