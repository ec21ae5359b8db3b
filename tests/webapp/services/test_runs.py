"""A run goes on lineage by lineage, and ends when nothing is left to do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from evolution.contracts import Attempt, GateStatus, StepEnd, StepResult, Verdict
from evolution.llm.budget import Limits
from tests.webapp.rows import make_mutation, make_seed, make_user
from webapp import dispatch
from webapp.adapters.journal import DatabaseJournal
from webapp.lifecycle import RunStatus, VerificationStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, Role, Verification
from webapp.services import leases, runs, steps, verifications
from webapp.services.errors import InvalidInput, NotAllowed, TransitionRefused

pytestmark = pytest.mark.django_db


def _accept(step: EvolutionStep, text: str) -> None:
    """Do the step as a worker would, with a child that passes."""
    assert leases.claim(step)
    plan, mutation = make_mutation(step.parent, text)
    journal = DatabaseJournal(step)
    journal.open_candidate(plan, mutation, 0)
    attempt = Attempt(plan, mutation, Verdict(GateStatus.PASSED, ()))
    journal.close_candidate(attempt)
    steps.record_step(step, StepResult(StepEnd.ACCEPTED, (attempt,)), 1.0)


def _exhaust(step: EvolutionStep) -> None:
    assert leases.claim(step)
    steps.record_step(step, StepResult(StepEnd.EXHAUSTED, refusals=("nothing fits",)), 1.0)


def _open_step(run: EvolutionRun) -> EvolutionStep:
    return run.steps.get(status=RunStatus.QUEUED)


def test_a_run_makes_one_step_at_a_time_in_a_lineage_and_completes() -> None:
    seed = make_seed()
    run = runs.create_run(lineages=[seed.lineage], generations=2, children=2)
    places = []
    for number in range(4):
        step = _open_step(run)
        places.append((step.generation, step.ordinal))
        _accept(step, f"Text {number}.")
    assert places == [(1, 0), (1, 1), (2, 0), (2, 1)]
    run.refresh_from_db()
    assert run.status == RunStatus.COMPLETED
    assert run.finished_at is not None
    second = Environment.objects.filter(generation=2)
    assert {child.parent_id for child in second} == set(
        Environment.objects.filter(generation=1).values_list("pk", flat=True)
    ), "children spread over the valid parents"


def test_a_step_that_the_machinery_spoiled_is_tried_three_times() -> None:
    seed = make_seed()
    run = runs.create_run(lineages=[seed.lineage], generations=2, children=1)
    for attempt in range(1, leases.MAX_ATTEMPTS + 1):
        step = _open_step(run)
        assert leases.claim(step)
        assert step.attempt == attempt
        steps.record_step(step, StepResult(StepEnd.INCONCLUSIVE), 1.0)
    run.refresh_from_db()
    assert run.status == RunStatus.COMPLETED
    assert run.steps.get().end == StepEnd.INCONCLUSIVE


def test_a_lineage_without_a_valid_child_ends_there() -> None:
    seed = make_seed()
    run = runs.create_run(lineages=[seed.lineage], generations=3, children=1)
    _exhaust(_open_step(run))
    run.refresh_from_db()
    assert run.status == RunStatus.COMPLETED
    assert run.steps.count() == 1


def test_who_is_late_to_complete_or_to_ask_for_a_verdict_changes_nothing() -> None:
    seed, other = make_seed(), make_seed("other", is_valid=False)
    run = runs.create_run(lineages=[seed.lineage], generations=1, children=1)
    late = EvolutionRun.objects.get(pk=run.pk)
    _exhaust(_open_step(run))
    assert late.status == RunStatus.RUNNING
    runs.advance_run(late)
    run.refresh_from_db()
    assert run.status == RunStatus.COMPLETED
    stale = Environment.objects.get(pk=other.pk)
    assert verifications.request_verification(other)
    assert verifications.request_verification(stale)
    assert stale.verification == VerificationStatus.VERIFYING
    assert other.verifications.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_one_verification_comes() -> None:
    seed = make_seed(is_valid=False)

    def ask(_: int) -> bool:
        try:
            with dispatch.muted():
                return verifications.request_verification(Environment.objects.get(pk=seed.pk))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
    assert seed.verifications.count() == 1


def test_a_seed_without_a_verdict_is_verified_first_and_an_invalid_one_is_left_out() -> None:
    seed = make_seed(is_valid=False)
    run = runs.create_run(lineages=[seed.lineage], generations=1, children=1)
    verification = Verification.objects.get(environment=seed)
    assert not run.steps.exists()
    assert leases.claim(verification)
    verifications.record_verdict(verification, Verdict(GateStatus.FAILED, ()))
    runs.advance_run(run)
    seed.refresh_from_db()
    run.refresh_from_db()
    assert seed.verification == VerificationStatus.INVALID
    assert run.status == RunStatus.COMPLETED
    assert not run.steps.exists()


def test_spoiled_verifications_are_tried_three_times_then_given_up() -> None:
    seed = make_seed(is_valid=False)
    run = runs.create_run(lineages=[seed.lineage], generations=1, children=1)
    for _ in range(verifications.MAX_ERRORED):
        verification = Verification.objects.get(environment=seed, status="queued")
        assert leases.claim(verification)
        verifications.record_verdict(verification, Verdict(GateStatus.INCONCLUSIVE, ()))
        runs.advance_run(run)
        run.refresh_from_db()
    assert seed.verifications.count() == verifications.MAX_ERRORED
    assert run.status == RunStatus.COMPLETED


def test_steps_have_seeds_of_their_own_that_depend_on_the_run_s_seed_only() -> None:
    seed = make_seed()
    same = [
        runs.create_run(lineages=[seed.lineage], seed=7, children=1).steps.get().seed
        for _ in range(2)
    ]
    other = runs.create_run(lineages=[seed.lineage], seed=8, children=1).steps.get().seed
    assert same[0] == same[1] != other


def test_a_paused_run_starts_nothing_and_goes_on_when_resumed() -> None:
    olga = make_user("olga", Role.OPERATOR)
    seed = make_seed()
    run = runs.create_run(lineages=[seed.lineage], generations=2, children=1, user=olga)
    step = _open_step(run)
    runs.pause_run(run, olga)
    assert not leases.claim(step), "a queued step of a paused run is not to be started"
    runs.resume_run(run, olga)
    step.refresh_from_db()
    _accept(step, "Text.")
    run.refresh_from_db()
    assert _open_step(run).generation == 2


def test_a_cancelled_run_cancels_what_waits() -> None:
    seed = make_seed()
    run = runs.create_run(lineages=[seed.lineage], generations=2, children=1)
    runs.cancel_run(run, None)
    assert run.status == RunStatus.CANCELLED
    assert run.steps.get().status == RunStatus.CANCELLED
    with pytest.raises(TransitionRefused):
        runs.resume_run(run, None)


def test_what_makes_no_sense_is_refused() -> None:
    seed, ana = make_seed(), make_user("ana")
    with pytest.raises(NotAllowed):
        runs.create_run(lineages=[seed.lineage], user=ana)
    wrong: tuple[dict[str, object], ...] = (
        {"lineages": []},
        {"generations": 0},
        {"children": 9},
        {"seed": -1},
        {"seed": 2**63},
        {"name": "x" * 201},
        {"name": "a\0b"},
        {"budget": Limits(seconds=5.0)},
        {"budget": Limits(usd=float("nan"))},
        {"author": "llm", "budget": Limits(tokens=10**30)},
    )
    for values in wrong:
        with pytest.raises(InvalidInput):
            runs.create_run(**{"lineages": [seed.lineage], **values})  # type: ignore[arg-type]
    assert not EvolutionRun.objects.exists()
