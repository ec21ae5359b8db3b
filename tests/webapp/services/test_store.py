"""Bundles in the database: once, whole, checked on the way out."""

from __future__ import annotations

import pytest

from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile
from tests.webapp.rows import make_bundle, make_child, make_mutation, make_seed
from webapp.models import Blob, Environment, Lineage
from webapp.services import environments
from webapp.store import CorruptStore, load_bundle

pytestmark = pytest.mark.django_db


def test_a_bundle_comes_out_as_it_went_in() -> None:
    bundle = Bundle.of(
        [
            *make_bundle().files,
            SandboxFile("environment/data.bin", bytes(range(256)), 0o600),
            SandboxFile("environment/link", link="data.bin"),
            SandboxFile("environment/empty", b""),
        ]
    )
    environment, is_new = environments.import_seed(bundle, name="tests/x", origin="tests")
    assert is_new
    assert load_bundle(environment) == bundle
    assert environment.lineage.licence == "CC0-1.0"
    assert environment.lineage.tags == ["text"]


def test_the_same_seed_twice_is_one() -> None:
    first = make_seed()
    again, is_new = environments.import_seed(make_bundle(), name="tests/y", origin="tests")
    assert (again, is_new) == (first, False)
    assert Lineage.objects.count() == 1


def test_a_child_stores_only_what_it_changed() -> None:
    seed = make_seed()
    before = Blob.objects.count()
    child = make_child(seed)
    assert Blob.objects.count() == before + 2, "the new instruction, and the parts of the proof"
    assert child.path.startswith(f"{seed.path}.")
    assert child.demands_live == 1
    assert child.change_rates["parent"]["instruction"] > 0


def test_the_parts_of_a_proof_survive() -> None:
    seed = make_seed()
    child = make_child(seed)
    assert environments.load_mutation(child) == make_mutation(seed)[1]
    assert environments.load_mutation(seed) is None


def test_damaged_bytes_are_noticed() -> None:
    seed = make_seed()
    digest = next(row[2] for row in seed.manifest if row[0] == "instruction.md")
    Blob.objects.filter(pk=digest).update(data=b"something else")
    with pytest.raises(CorruptStore, match="damaged"):
        load_bundle(Environment.objects.get(pk=seed.pk))
    Blob.objects.filter(pk=digest).delete()
    with pytest.raises(CorruptStore, match="missing"):
        load_bundle(Environment.objects.get(pk=seed.pk))
