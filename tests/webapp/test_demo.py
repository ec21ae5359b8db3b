"""manage.py demo: what it brings into the database. `.ci/run` runs the whole of it."""

from __future__ import annotations

from tests.conftest import ROOT
from webapp.management.commands.demo import import_bundled
from webapp.models import Import
from webapp.selectors.imports import environments_of


def test_the_bundled_seeds_come_in_as_an_import_of_their_own(db: None) -> None:
    lineages = import_bundled()
    batch = Import.objects.get()
    names = {config.parent.name for config in (ROOT / "seeds").glob("*/task.toml")}
    assert {seed.name.rpartition("/")[2] for seed in environments_of(batch)} == names
    assert {seed.lineage for seed in environments_of(batch)} == set(lineages)
    assert batch.finished_at is not None


def test_a_second_demo_finds_the_same_seeds(db: None) -> None:
    lineages = import_bundled()
    assert import_bundled() == lineages
    assert {entry.outcome for entry in Import.objects.latest("pk").entries.all()} == {"known"}
