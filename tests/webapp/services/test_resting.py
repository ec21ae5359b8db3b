"""Runs of models that rest: for want of budget or of a model, and how they go on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from evolution.contracts import StepEnd, StepResult
from evolution.llm.budget import Limits
from evolution.llm.calls import BudgetStop, CallLog, CallOutcome, Usage
from evolution.llm.endpoints import ModelConfigError
from evolution.ports import Author
from sandbox.base import TrialRunner
from tests.webapp.conversations import make_call
from tests.webapp.rows import make_run, make_seed, make_step
from webapp.adapters import work
from webapp.adapters.calls import DatabaseCallLog
from webapp.lifecycle import RunStatus
from webapp.models import Event, EvolutionRun, EvolutionStep
from webapp.selectors.spend import SILENCE_SECONDS, seconds_at_work
from webapp.services import leases, runs, steps
from webapp.services.budgets import check_budget
from webapp.services.calls import Place, store_call
from webapp.services.errors import InvalidInput, TransitionRefused

pytestmark = pytest.mark.django_db


@pytest.fixture
def step() -> EvolutionStep:
    """A step of a run of models that a worker has claimed."""
    seed = make_seed()
    run = make_run(seed)
    EvolutionRun.objects.filter(pk=run.pk).update(author="llm", budget_usd=1.0)
    made = make_step(EvolutionRun.objects.get(pk=run.pk), seed)
    assert leases.claim(made)
    return made


def reload(step: EvolutionStep) -> EvolutionStep:
    return EvolutionStep.objects.select_related("run").get(pk=step.pk)


def test_the_hard_stop_puts_the_step_back_and_rests_the_run_once(step: EvolutionStep) -> None:
    other = make_step(step.run, step.parent, 1)
    assert leases.claim(other)
    steps.stop_for_budget(step, "1.0000 of 1.0000 USD")
    steps.stop_for_budget(other, "1.0000 of 1.0000 USD")
    now = reload(step)
    assert (now.status, now.excused) == (RunStatus.QUEUED, 1)
    assert (now.run.status, now.run.pause_reason) == (RunStatus.PAUSED, "budget")
    assert Event.objects.filter(kind="evolutionrun.status", target="paused").count() == 1
    assert not leases.claim(now)


def _any(_: Usage) -> None:
    """Everything fits."""


def test_a_cancelled_run_spends_no_more_and_its_step_ends(step: EvolutionStep) -> None:
    with DatabaseCallLog(Place(run=step.run, step=step)) as log:
        assert log.reserve(Usage(1), 60, _any) is not None
        runs.cancel_run(EvolutionRun.objects.get(pk=step.run_id), None)
        with pytest.raises(BudgetStop, match="cancelled") as stopped:
            log.reserve(Usage(1), 60, _any)
    steps.stop_for_budget(step, str(stopped.value))
    now = reload(step)
    assert (now.status, now.run.status) == (RunStatus.CANCELLED, RunStatus.CANCELLED)
    assert now.finished_at is not None


def test_a_step_waits_longer_each_time_and_its_run_rests_in_the_end(step: EvolutionStep) -> None:
    waits = []
    for _ in range(steps.PATIENCE):
        steps.wait_for_model(step, CallOutcome.SERVER_ERROR, "http://x: 500")
        now = reload(step)
        waits.append((now.sent_at - timezone.now()).total_seconds())
        if now.run.status == RunStatus.RUNNING:
            assert leases.claim(now)
            step = now
    # At the longest wait, only the moment of looking differs.
    assert all(later > wait - 5 for wait, later in pairwise(waits))
    assert 10 < waits[0] <= steps.FIRST_WAIT_SECONDS
    assert max(waits) <= steps.LONGEST_WAIT_SECONDS
    assert (now.run.status, now.run.pause_reason) == (RunStatus.PAUSED, "model")
    assert leases.has_attempts_left(now)


@pytest.mark.parametrize("outcome", [CallOutcome.AUTH, CallOutcome.BAD_REQUEST])
def test_what_no_waiting_mends_rests_the_run_at_once(
    step: EvolutionStep, outcome: CallOutcome
) -> None:
    steps.wait_for_model(step, outcome, "the key is refused")
    now = reload(step)
    assert (now.status, now.run.status) == (RunStatus.QUEUED, RunStatus.PAUSED)
    assert now.run.error == "the key is refused"


def test_a_zombie_worker_stops_nothing(step: EvolutionStep) -> None:
    zombie = reload(step)
    leases.put_back(step, "the worker went silent")
    assert leases.claim(step)
    for stop in (
        lambda: steps.stop_for_budget(zombie, "used up"),
        lambda: steps.wait_for_model(zombie, CallOutcome.AUTH, "refused"),
    ):
        with pytest.raises(TransitionRefused):
            stop()
    assert reload(step).run.status == RunStatus.RUNNING


def test_a_resumed_run_needs_room_and_its_waiting_steps_are_due_at_once(
    step: EvolutionStep,
) -> None:
    store_call(Place(run=step.run, step=step), make_call(usage=Usage(10, 10, 0, 1.2)))
    steps.stop_for_budget(step, "used up")
    run = reload(step).run
    for budget in (None, Limits(usd=1.1), Limits(usd=5.0, tokens=20)):
        with pytest.raises(InvalidInput, match="has used"):
            runs.resume_run(run, None, budget)
    EvolutionStep.objects.filter(pk=step.pk).update(sent_at=timezone.now() + timedelta(hours=1))
    runs.resume_run(run, None, Limits(usd=5.0))
    now = reload(step)
    assert (now.run.budget_usd, now.run.pause_reason) == (5.0, "")
    assert now.sent_at <= timezone.now()
    assert leases.claim(now)


@pytest.mark.parametrize(
    "budget",
    [
        Limits(),
        Limits(usd=0.0),
        Limits(usd=float("nan")),
        Limits(usd=float("inf")),
        Limits(tokens=-1),
        Limits(tokens=10**400),
        Limits(seconds=1e30),
    ],
)
def test_what_is_no_budget_is_refused(budget: Limits) -> None:
    with pytest.raises(InvalidInput):
        check_budget(budget)


def test_pauses_and_silence_are_no_work(step: EvolutionStep) -> None:
    run, begun = step.run, timezone.now() - timedelta(days=2)
    Event.objects.filter(run=run).delete()
    moments = [(0, "running"), (60, ""), (100, "paused"), (5_000, "running"), (90_000, "")]
    for seconds, target in moments:
        kind = "evolutionrun.status" if target else "plan"
        event = Event.objects.create(kind=kind, target=target, run=run)
        Event.objects.filter(pk=event.pk).update(at=begun + timedelta(seconds=seconds))
    now = begun + timedelta(seconds=90_010)
    assert seconds_at_work(run, now) == pytest.approx(100 + SILENCE_SECONDS + 10)


def _no_runner(_: str) -> TrialRunner:
    raise AssertionError("no trial is run here")


def test_a_model_that_cannot_be_made_rests_the_run_with_the_line(step: EvolutionStep) -> None:
    leases.put_back(step, "again")

    def author_for(_: EvolutionStep, __: CallLog) -> AbstractContextManager[Author]:
        raise ModelConfigError("no model is configured: set RATCHET_MODELS")

    assert work.work_on_step(step.pk, _no_runner, author_for, "here")
    now = reload(step)
    assert (now.run.pause_reason, now.status) == ("model", RunStatus.QUEUED)
    assert now.run.error == "no model is configured: set RATCHET_MODELS"


def test_a_step_that_says_it_waits_for_a_model_is_put_back(step: EvolutionStep) -> None:
    result = StepResult(
        StepEnd.INCONCLUSIVE,
        refusals=("model: http://x: timed out",),
        unavailable=CallOutcome.TIMEOUT,
    )
    steps.record_step(step, result, 1.0)
    now = reload(step)
    assert (now.status, now.error) == (RunStatus.QUEUED, "model: http://x: timed out")
    assert now.run.status == RunStatus.RUNNING
