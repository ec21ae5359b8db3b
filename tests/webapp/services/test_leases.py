"""Claims, leases, and what becomes of work whose worker went silent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from evolution.contracts import StepEnd, StepResult
from evolution.llm.calls import CallOutcome
from tests.webapp.conversations import make_call
from tests.webapp.rows import make_mutation, make_run, make_seed, make_step
from webapp.adapters.journal import DatabaseJournal
from webapp.lifecycle import RunStatus, TrialStatus, VerificationStatus
from webapp.models import EvolutionStep, Verification
from webapp.services import leases, runs, steps
from webapp.services.calls import Place, store_call
from webapp.services.errors import TransitionRefused

pytestmark = pytest.mark.django_db


@pytest.fixture
def step() -> EvolutionStep:
    seed = make_seed()
    return make_step(make_run(seed), seed)


@pytest.mark.django_db(transaction=True)
def test_of_many_claims_at_once_one_is_given(step: EvolutionStep) -> None:
    def claim(_: int) -> bool:
        try:
            return leases.claim(EvolutionStep.objects.get(pk=step.pk))
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(claim, range(20))) == 1
    step.refresh_from_db()
    assert (step.status, step.attempt) == (RunStatus.RUNNING, 1)


def test_silent_work_is_put_back_and_fails_after_three_attempts(step: EvolutionStep) -> None:
    later = timezone.now() + timedelta(seconds=leases.LEASE_SECONDS + 1)
    for attempt in range(1, leases.MAX_ATTEMPTS + 1):
        assert leases.claim(step)
        assert leases.expire() == 0, "a lease that has not run out is left alone"
        assert leases.expire(later) == 1
        step.refresh_from_db()
        assert step.attempt == attempt
    assert step.status == RunStatus.FAILED
    assert "attempt 3" in step.error


def test_work_that_gets_on_is_not_given_up_however_often_its_worker_is_killed(
    step: EvolutionStep,
) -> None:
    later = timezone.now() + timedelta(hours=1)
    place = Place(run=step.run, step=step)
    for attempt in range(1, 7):
        assert leases.claim(step)
        store_call(place, make_call(f"{attempt}"))
        leases.expire(later)
        step.refresh_from_db()
        assert step.status == RunStatus.QUEUED
    for _ in range(leases.MAX_ATTEMPTS):
        assert step.status == RunStatus.QUEUED
        assert leases.claim(step)
        store_call(place, make_call("lost", outcome=CallOutcome.TIMEOUT))
        leases.expire(later)
        step.refresh_from_db()
    assert step.status == RunStatus.FAILED, "three attempts in a row left no answer"


def test_silent_work_of_a_cancelled_run_is_given_up_at_once(step: EvolutionStep) -> None:
    assert leases.claim(step)
    plan, mutation = make_mutation(step.parent, "Text.")
    DatabaseJournal(step).open_candidate(plan, mutation, 0)
    runs.cancel_run(step.run, None)
    leases.expire(timezone.now() + timedelta(hours=1))
    step.refresh_from_db()
    assert step.status == RunStatus.FAILED
    assert step.candidates.get().verification == VerificationStatus.ERRORED


def test_a_heartbeat_keeps_the_lease_and_a_lost_one_cannot_be_extended(step: EvolutionStep) -> None:
    assert leases.claim(step)
    before = step.lease_expires_at
    assert leases.extend(step)
    step.refresh_from_db()
    assert before is not None
    assert step.lease_expires_at is not None
    assert step.lease_expires_at >= before
    zombie = EvolutionStep.objects.get(pk=step.pk)
    leases.expire(timezone.now() + timedelta(hours=1))
    assert not leases.extend(zombie)


def test_a_zombie_cannot_record(step: EvolutionStep) -> None:
    assert leases.claim(step)
    zombie = EvolutionStep.objects.get(pk=step.pk)
    leases.expire(timezone.now() + timedelta(hours=1))
    step.refresh_from_db()
    assert leases.claim(step)
    result = StepResult(StepEnd.EXHAUSTED, refusals=("nothing fits",))
    with pytest.raises(TransitionRefused):
        steps.record_step(zombie, result, 1.0)
    steps.record_step(step, result, 1.0)
    assert step.status == RunStatus.COMPLETED


def test_work_that_is_given_up_leaves_nothing_verifying(step: EvolutionStep) -> None:
    assert leases.claim(step)
    plan, mutation = make_mutation(step.parent)
    log = DatabaseJournal(step).open_candidate(plan, mutation, 0)
    candidate = log.verification.environment
    assert candidate.verification == VerificationStatus.VERIFYING
    EvolutionStep.objects.filter(pk=step.pk).update(attempt=leases.MAX_ATTEMPTS)
    leases.expire(timezone.now() + timedelta(hours=1))
    candidate.refresh_from_db()
    assert candidate.verification == VerificationStatus.ERRORED
    assert Verification.objects.get().status == TrialStatus.ERRORED


def test_a_resumed_step_finds_its_candidate_again(step: EvolutionStep) -> None:
    plan, mutation = make_mutation(step.parent)
    first = DatabaseJournal(step).open_candidate(plan, mutation, 0).verification
    again = DatabaseJournal(step).open_candidate(plan, mutation, 0).verification
    assert again == first
