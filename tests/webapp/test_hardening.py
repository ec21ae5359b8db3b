"""A hardened child in the database, and the command that makes it."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client

from evolution.exporting import verify_export
from evolution.hardening import NAME
from sandbox.errors import SandboxUnavailable
from tests.evolution.real_sandbox import orders
from tests.evolution.test_hardening import shared
from tests.webapp import builders
from tests.webapp.rows import make_user
from tests.webapp.verdicts import add_verification
from webapp import wiring
from webapp.adapters.errands import work_on_errand
from webapp.lifecycle import RunStatus, TrialStatus, VerificationStatus
from webapp.models import Environment, EnvironmentKind, Errand, ErrandKind, Event, Role
from webapp.services import datasets, errands, reviews
from webapp.services.environments import import_seed, load_mutation, load_subject
from webapp.services.errands import Done
from webapp.services.revisions import add_revision
from webapp.store import load_bundle


def revised() -> tuple[Environment, Environment]:
    parent, _ = import_seed(shared(), name="orders", origin="a test")
    child, is_new = add_revision(
        parent, orders(), operator=NAME, title="Verifier hardened: apart", why="It was cheated."
    )
    assert is_new
    return parent, child


@pytest.mark.django_db(transaction=True)
def test_two_who_make_the_same_revision_at_once_share_one_child() -> None:
    parent, _ = import_seed(shared(), name="orders", origin="a test")
    start = threading.Barrier(4)

    def revise(_: int) -> tuple[int, bool]:
        try:
            start.wait()
            child, is_new = add_revision(parent, orders(), operator=NAME, title="x", why="y")
            return child.pk, is_new
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(revise, range(4)))
    assert len({pk for pk, _ in made}) == 1
    assert sum(is_new for _, is_new in made) == 1
    parent.lineage.refresh_from_db()
    assert parent.lineage.node_count == 2


@pytest.mark.django_db
def test_a_revision_claims_no_difficulty() -> None:
    parent, child = revised()
    assert child.parent == parent
    assert (child.generation, child.path) == (1, f"{parent.path}.000")
    assert child.is_revision
    assert not parent.is_revision
    assert (child.direction, child.aspect, child.effect, child.effort) == ("", "", "", "")
    assert (child.demands, child.sequence) == (parent.demands, parent.sequence)
    assert child.kind == EnvironmentKind.IMPORTED, "as much is asked of it as of its parent"
    assert load_bundle(child) == orders()
    assert load_mutation(child) is None
    assert load_subject(child).generation == 1
    assert child.change_rates["parent"]["instruction"] == 0.0
    assert child.change_rates["parent"]["verification"] > 0.0
    parent.lineage.refresh_from_db()
    assert (parent.lineage.node_count, parent.lineage.max_generation) == (2, 1)
    event = Event.objects.get(kind="environment.revised")
    assert event.environment == child


@pytest.mark.django_db
def test_the_same_revision_twice_is_one() -> None:
    parent, child = revised()
    again, is_new = add_revision(parent, orders(), operator=NAME, title="Again", why="")
    assert (again, is_new) == (child, False)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_the_command_makes_and_verifies_a_child() -> None:
    parent, _ = import_seed(shared(), name="orders", origin="a test")
    safe, _ = import_seed(orders(), name="safe", origin="a test")
    out = StringIO()
    with pytest.raises(CommandError, match="1 of 2 have no hardened child"):
        call_command("evolve", "--harden", "orders", str(safe.pk), "--json", stdout=out)
    first, second = json.loads(out.getvalue().splitlines()[-1])["hardened"]
    assert (first["end"], first["verification"]) == ("accepted", VerificationStatus.VALID)
    assert "a .pth file" in first["refused"]
    child = Environment.objects.get(pk=first["child"])
    assert (child.parent, child.operator) == (parent, NAME)
    assert child.current_verification is not None
    answers = {gate.gate: gate.status for gate in child.current_verification.gates.all()}
    assert answers["exploits"] == "passed"
    assert answers["novel"] == "not_applicable"
    assert (second["end"], second["child"]) == ("exhausted", None)
    assert second["reason"] == "no cheat that is known is rewarded here"
    assert Event.objects.filter(kind="environment.not_hardened", environment=safe).exists()


@pytest.mark.django_db
def test_a_revision_has_all_pages(client: Client) -> None:
    client.force_login(builders.make_user(Role.REVIEWER))
    parent, child = revised()
    tabs = ("", "files/", "diff/", "gates/", "trials/", "lineage/", "reviews/", "history/")
    places = [f"/environments/{child.pk}/{tab}" for tab in tabs]
    places += [f"/lineage/{child.lineage_id}/", f"/lineage/panel/{child.pk}/", "/environments/"]
    places += [f"/lineage/children/{parent.pk}/", f"/review/{child.pk}/", "/", "/review/"]
    for place in places:
        response = client.get(place, follow=True)
        assert response.status_code == 200, place
    assert child.why in client.get(places[0]).text


@pytest.mark.django_db
def test_a_revision_can_be_approved_and_exported(tmp_path: Path) -> None:
    _, child = revised()
    Environment.objects.filter(pk=child.pk).update(verification=VerificationStatus.VALID)
    curator = builders.make_user(Role.CURATOR)
    reviews.decide(child.pk, curator, "approved", child.digest)
    datasets.freeze("Hardened", [child.pk], curator)
    call_command("export", "hardened", "--out", str(tmp_path), stdout=StringIO())
    assert verify_export(tmp_path / "hardened-v1") == ()


def cheated() -> Environment:
    """A seed whose newest full verification names a cheat that is rewarded."""
    seed, _ = import_seed(shared(), name="orders", origin="a test")
    verification = add_verification(seed)
    verification.gates.update_or_create(
        gate="exploits",
        defaults={
            "position": 90,
            "version": 5,
            "status": "failed",
            "reason": "1 of 30 cheats is rewarded: a .pth file",
            "is_blocking": False,
            "evidence": [{"label": "a .pth file", "result": "rewarded"}],
        },
    )
    return seed


def harden_page(client: Client, seed: Environment) -> str:
    return client.get(f"/environments/{seed.pk}/gates/").text


@pytest.mark.django_db
def test_only_operators_may_press_the_button_that_hardens(client: Client) -> None:
    seed = cheated()
    url = f"/environments/{seed.pk}/errands/harden/"
    client.force_login(make_user("vera", Role.REVIEWER))
    page = harden_page(client, seed)
    assert f"manage.py evolve --harden {seed.pk}" in page
    assert f'action="{url}"' not in page
    assert client.post(url).status_code == 403
    client.force_login(make_user("olga", Role.OPERATOR))
    assert client.get(url).status_code == 405
    assert f'action="{url}"' in harden_page(client, seed)
    assert client.post(url).headers["Location"] == f"/environments/{seed.pk}/gates/"
    assert "a worker is at that already" in client.post(url, follow=True).text
    errand = Errand.objects.get()
    assert (errand.kind, errand.status) == (ErrandKind.HARDEN, RunStatus.QUEUED)
    page = harden_page(client, seed)
    assert "the strictest first" in page
    assert f'action="{url}"' not in page


@pytest.mark.django_db
def test_nothing_is_asked_where_no_cheat_is_rewarded(client: Client) -> None:
    seed = cheated()
    client.force_login(make_user("olga", Role.OPERATOR))
    url = f"/environments/{seed.pk}/errands/harden/"
    seed.verifications.get().gates.filter(gate="exploits").update(status="passed")
    assert "Hardening the verifier" not in harden_page(client, seed)
    assert "no cheat that is known is rewarded here" in client.post(url, follow=True).text
    seed.verifications.get().gates.filter(gate="exploits").delete()
    assert "verify it in full first" in client.post(url, follow=True).text
    assert not Errand.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_line_says_why_nothing_can_be_hardened(client: Client) -> None:
    seed = cheated()
    client.force_login(make_user("olga", Role.OPERATOR))
    errand = errands.ask_errand(seed, ErrandKind.HARDEN)
    tried = ["the tests are tightly locked: still rewarded: a .pth file"]
    assert work_on_errand(errand.pk, lambda _: Done(tried[0], {"tried": tried}), "tests")
    page = harden_page(client, seed)
    assert f"<b>Nothing can be hardened:</b> {tried[0]}." in page
    assert "1 way tried" in page
    assert ">Try again</button>" in page
    again = errands.ask_errand(seed, ErrandKind.HARDEN)

    def broken(_: Errand) -> Done:
        raise SandboxUnavailable("the engine went away")

    assert work_on_errand(again.pk, broken, "tests")
    assert "The engine went away. Asked again, it begins anew." in harden_page(client, seed)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_a_worker_makes_the_hardened_child_and_has_it_verified(client: Client) -> None:
    seed = cheated()
    errand = errands.ask_errand(seed, ErrandKind.HARDEN)
    assert work_on_errand(errand.pk, wiring.carry_out_errand, "tests")
    errand.refresh_from_db()
    assert errand.status == RunStatus.COMPLETED, errand.error
    child = errand.child
    assert child is not None
    assert (child.parent, child.operator) == (seed, NAME)
    assert "a .pth file" in errand.answer["refused"]
    queued = child.verifications.get()
    assert (queued.status, queued.depth) == (TrialStatus.QUEUED, "full")
    client.force_login(make_user("olga", Role.OPERATOR))
    page = harden_page(client, seed)
    assert f'<a href="/environments/{child.pk}/gates/">The hardened child</a>' in page
    assert (
        f"environment {child.pk} is its hardened child"
        in client.post(f"/environments/{seed.pk}/errands/harden/", follow=True).text
    )
