"""What a person asks of a model about one environment: a solution that it lacks, a diagnosis."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from evolution.bundle import Bundle
from evolution.llm.budget import Limits
from evolution.reading import find_bundles
from sandbox.contracts import Outcome
from tests.conftest import ROOT
from tests.harness.lineages import KEY, endpoint
from tests.harness.server import ModelServer
from tests.harness.server.models import all_models
from tests.webapp.rows import make_seed, make_user
from tests.webapp.verdicts import add_verification, trial_result
from webapp.adapters.errands import work_on_errand
from webapp.lifecycle import RunStatus, VerificationStatus
from webapp.models import (
    Blob,
    Environment,
    Errand,
    ErrandKind,
    EvolutionStep,
    ModelCall,
    Role,
    SolverKind,
)
from webapp.services import attempts, errands, leases, runs
from webapp.services.environments import import_seed
from webapp.services.errands import Done
from webapp.services.errors import InvalidInput
from webapp.services.trials import pack_result
from webapp.services.unpassed import attempts_at

pytestmark = pytest.mark.django_db(transaction=True)
PLENTY = Limits(tokens=2_000_000)
SEED = "service-config-migration"


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Scripted models, of which the competent one plays every role."""
    monkeypatch.setenv("HARNESS_KEY", KEY)
    settings.RATCHET_SANDBOX = "bubblewrap"
    with ModelServer(all_models()) as server:
        settings.RATCHET_MODELS = endpoint(server.url, "competent", "attempts=2")
        settings.RATCHET_PRICES = ""
        yield server


def unsolved() -> Environment:
    """A bundled seed without its solution."""
    (found,) = find_bundles(Path(ROOT, "seeds", SEED))
    assert isinstance(found.bundle, Bundle)
    gone = [path for path in found.bundle.by_path if path.startswith("solution/")]
    return import_seed(found.bundle.with_files((), gone), name=SEED, origin="tests")[0]


def failed_by_solvers(count: int = 2) -> Environment:
    """A seed at which attempts failed."""
    seed = make_seed()
    solver = attempts.find_solver("somebody", SolverKind.IMPORTED)
    for number in range(1, count + 1):
        made = attempts.Attempt(is_passed=False, counts=True, source="a test", reward=0.0)
        attempts.record_attempt(solver, seed, attempts.measured_name(seed), number, made)
    return seed


def command(*arguments: str) -> dict[str, Any]:
    """The one environment's row in what the command tells."""
    out = StringIO()
    try:
        call_command(*arguments, "--json", stdout=out, stderr=StringIO())
    finally:
        rows = next(iter(json.loads(out.getvalue()).values())) if out.getvalue() else []
    found: dict[str, Any] = rows[0]
    return found


@pytest.mark.bubblewrap
def test_a_missing_solution_is_written_and_only_the_gates_accept_it(
    server: ModelServer, client: Client
) -> None:
    root = unsolved()
    assert not root.has_solution
    row = command("evolve", "--solve", str(root.pk), "--budget-tokens", "2000000")
    child = Environment.objects.get(pk=row["child"])
    assert (child.parent, child.operator, child.has_solution) == (root, "solved", True)
    assert child.verification == VerificationStatus.VALID, child.failure
    assert child.is_revision
    assert child.verifications.count() == 1
    assert {call.role for call in ModelCall.objects.all()} == {"cold_start"}
    client.force_login(make_user("ana", Role.VIEWER))
    page = client.get(f"/environments/{child.pk}/making/")
    assert "Cold start" in page.text, "who wrote it is told where it is looked at"
    assert f"/environments/{child.pk}/" in client.get(f"/environments/{root.pk}/gates/").text
    run = runs.create_run(lineages=[root.lineage], generations=1, children=1)
    assert EvolutionStep.objects.get(run=run).parent == child, "a run begins where it is solved"


def test_what_needs_no_solution_or_cannot_be_paid_is_refused(server: ModelServer) -> None:
    seed = make_seed()
    with pytest.raises(CommandError, match="it has a reference solution"):
        command("evolve", "--solve", str(seed.pk), "--budget-tokens", "9")
    with pytest.raises(CommandError, match="RATCHET_PRICES"):
        call_command("evolve", "--solve", str(seed.pk), "--budget-usd", "1", stdout=StringIO())
    with pytest.raises(CommandError, match="needs a budget"):
        command("measure", str(failed_by_solvers().pk), "--triage")
    assert not Errand.objects.exists()
    assert not server.served


def test_a_triage_says_what_it_is_with_a_quote(server: ModelServer, client: Client) -> None:
    seed = failed_by_solvers()
    row = command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    assert row["answer"] == {
        "kind": "unsolved",
        "quote": "reward 0",
        "reason": "the work was not done",
    }
    client.force_login(make_user("ana", Role.VIEWER))
    page = client.get(f"/environments/{seed.pk}/gates/").text
    for words in ("unsolved", "reward 0", "the work was not done", "what was said"):
        assert words in page, words
    again = command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    assert again["answer"] == row["answer"]
    assert ModelCall.objects.count() == 2, "what came to an end is asked anew"


def test_a_failing_reference_solution_is_shown_to_the_triage(server: ModelServer) -> None:
    seed = make_seed()
    verification = add_verification(seed)
    assert "nobody has tried it but its own solution" in attempts_at(seed).refusal
    with pytest.raises(InvalidInput, match="measure it first"):
        errands.ask_errand(seed, ErrandKind.TRIAGE, PLENTY)
    failed = pack_result(trial_result(False, ["check_report"]))
    verification.trials.filter(solver="oracle").update(record=failed, outcome=Outcome.FAIL)
    row = command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    assert row["answer"]["kind"] == "broken_oracle"
    assert "failed: check_report" in row["answer"]["quote"]


def test_what_somebody_passed_needs_no_triage(server: ModelServer) -> None:
    seed = failed_by_solvers()
    solver = attempts.find_solver("somebody", SolverKind.IMPORTED)
    made = attempts.Attempt(is_passed=True, counts=True, source="a test", reward=1.0)
    attempts.record_attempt(solver, seed, attempts.measured_name(seed), 3, made)
    with pytest.raises(InvalidInput, match="1 of 3 attempts have passed"):
        errands.ask_errand(seed, ErrandKind.TRIAGE, PLENTY)


def test_a_used_up_budget_breaks_it_off_and_a_larger_one_goes_on(server: ModelServer) -> None:
    seed = failed_by_solvers()
    with pytest.raises(CommandError, match="budget is used up"):
        command("measure", str(seed.pk), "--triage", "--budget-tokens", "10")
    first = Errand.objects.get()
    assert (first.status, first.answer) == (RunStatus.FAILED, {})
    assert not server.served
    row = command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    assert row["is_done"]
    assert [errand.number for errand in Errand.objects.order_by("pk")] == [1, 1]


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """As in a terminal: the processes of pytest-xdist ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_a_killed_command_left_is_taken_up_without_services(server: ModelServer) -> None:
    seed = failed_by_solvers()
    left = errands.ask_errand(seed, ErrandKind.TRIAGE, Limits(tokens=10))
    assert leases.claim(left)
    words = ("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    with pytest.raises(CommandError, match="a model is at that already"):
        command(*words)
    Errand.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(CommandError, match="needs a budget"):
        command(*words[:3])
    assert command(*words)["is_done"]
    done = Errand.objects.get()
    assert (done.status, done.attempt) == (RunStatus.COMPLETED, 2)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_a_command_that_is_stopped_leaves_nobody_at_it(server: ModelServer) -> None:
    seed = failed_by_solvers()
    server.at_call = lambda _: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    server.at_call = None
    first = Errand.objects.get()
    assert (first.status, first.lease_expires_at) == (RunStatus.FAILED, None)
    assert "was stopped" in first.error
    row = command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    assert row["is_done"], "asked again it goes on"
    assert [errand.number for errand in Errand.objects.order_by("pk")] == [1, 1]


def test_a_damaged_bundle_breaks_it_off_and_says_so(server: ModelServer) -> None:
    seed = failed_by_solvers()
    digest = next(str(row[2]) for row in seed.manifest if row[0] == "instruction.md")
    Blob.objects.filter(digest=digest).update(data=b"damaged")
    with pytest.raises(CommandError, match="damaged"):
        command("measure", str(seed.pk), "--triage", "--budget-tokens", "200000")
    errand = Errand.objects.get()
    assert (errand.status, errand.attempt) == (RunStatus.FAILED, 1)
    assert not server.served


def test_the_page_asks_once_and_shows_that_a_model_is_at_it(
    server: ModelServer, client: Client
) -> None:
    seed = failed_by_solvers()
    url = f"/environments/{seed.pk}/errands/triage/"
    client.force_login(make_user("vera", Role.REVIEWER))
    assert "measure" in client.get(f"/environments/{seed.pk}/gates/").text
    assert client.post(url, {"budget_tokens": 1000}).status_code == 403
    client.force_login(make_user("olga", Role.OPERATOR))
    page = client.get(f"/environments/{seed.pk}/gates/").text
    assert f'action="{url}"' in page
    assert "No reference solution" not in page
    for data, said in (
        ({}, "needs a budget"),
        ({"budget_usd": 1}, "RATCHET_PRICES"),
        ({"budget_tokens": -1}, "Budget in tokens"),
    ):
        assert said in client.post(url, data, follow=True).text
    assert client.post(f"/environments/{seed.pk}/errands/dance/", {}).status_code == 404
    client.post(url, {"budget_tokens": 200_000})
    assert (
        "a model is at that already"
        in client.post(url, {"budget_tokens": 200_000}, follow=True).text
    )
    part = client.get(f"/environments/{seed.pk}/errands/").text
    assert "A model looks for the reason" in part
    assert "every 3s" in part
    errand = Errand.objects.get()
    assert errand.created_by is not None
    assert work_on_errand(errand.pk, lambda _: Done("unclear: nothing tells"), "tests")
    assert not work_on_errand(errand.pk, lambda _: Done("again"), "tests"), "it is done"
    part = client.get(f"/environments/{seed.pk}/errands/").text
    assert "Unclear: nothing tells" in part
    assert "every 3s" not in part


def test_a_silent_workers_errand_is_taken_up_by_another_and_given_up_in_the_end() -> None:
    errand = errands.ask_errand(failed_by_solvers(), ErrandKind.TRIAGE, PLENTY)
    for attempt in range(1, leases.MAX_ATTEMPTS + 1):
        assert leases.claim(errand)
        assert errand.attempt == attempt
        assert leases.expire(timezone.now() + timedelta(hours=1)) == 1
        errand.refresh_from_db()
    assert errand.status == RunStatus.FAILED
    assert "went silent" in errand.error
