"""What leaves: the same bytes each time, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution.exporting import verify_export
from evolution.reading import FoundBundle, find_bundles
from tests.webapp.rows import make_child, make_seed, make_user
from webapp.models import DatasetVersion, DifficultyScore, Role
from webapp.services import datasets, exports, reviews
from webapp.services.errors import InvalidInput

pytestmark = pytest.mark.django_db


@pytest.fixture
def version() -> DatasetVersion:
    cleo = make_user("cleo", Role.CURATOR)
    child = make_child(make_seed())
    reviews.decide(child.pk, cleo, "approved", child.digest)
    return datasets.freeze("Set one", [child.pk], cleo)


def test_an_export_is_the_same_bytes_after_anything_was_measured(version: DatasetVersion) -> None:
    before = b"".join(exports.open_archive(version))
    child = version.members.get().environment
    DifficultyScore.objects.create(environment=child, measure="d_t", value=9.0)
    version.dataset.description = "another text"
    version.dataset.save(update_fields=["description"])
    again = DatasetVersion.objects.get(pk=version.pk)
    assert b"".join(exports.open_archive(again)) == before


def test_a_folder_is_whole_and_says_so_itself(version: DatasetVersion, tmp_path: Path) -> None:
    target = tmp_path / "set-one-v1"
    assert exports.export_folder(version, target) == 1
    assert verify_export(target) == ()
    (found,) = [item for item in find_bundles(target) if isinstance(item, FoundBundle)]
    assert found.bundle.digest == version.members.get().digest
    with pytest.raises(FileExistsError):
        exports.export_folder(version, target)
    assert [path.name for path in tmp_path.iterdir()] == ["set-one-v1"]


def test_a_name_that_cannot_be_shown_makes_no_dataset(version: DatasetVersion) -> None:
    ids = [version.members.get().environment_id]
    for name in ("", "x" * 101, "a\0b", "two\nlines", "escape\x1b[31m"):
        with pytest.raises(InvalidInput):
            datasets.freeze(name, ids, None)
    assert DatasetVersion.objects.count() == 1
