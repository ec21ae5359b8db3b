"""Calls to models: kept once, found again, summed whatever an endpoint says of its usage."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import threading

import pytest
from django.db.models import Q

from evolution.llm.budget import STEP_STOP
from evolution.llm.calls import CallOutcome, CallRecord, StepBudgetStop, Usage
from tests.webapp.conversations import make_call, says, user
from tests.webapp.rows import make_child, make_run, make_seed, make_step
from webapp.adapters.calls import DatabaseCallLog
from webapp.models import EvolutionStep, ModelCall
from webapp.services.calls import Place, find_call, store_call, sum_usage

pytestmark = pytest.mark.django_db


def _step() -> EvolutionStep:
    seed = make_seed()
    return make_step(make_run(seed), seed)


def _place(step: EvolutionStep) -> Place:
    return Place(run=step.run, step=step)


def test_a_recorded_call_comes_back_as_it_was() -> None:
    place = _place(_step())
    log = DatabaseCallLog(place)
    call = make_call(answer=says("Seal it."))
    assert log.recall(call.key) is None
    log.record(call)
    assert log.recall(call.key) == call
    assert sum_usage(place.scope) == call.usage


def test_only_a_final_outcome_is_recalled_and_every_attempt_is_counted() -> None:
    place = _place(_step())
    log = DatabaseCallLog(place)
    for outcome in CallOutcome:
        if not outcome.is_final:
            log.record(make_call(outcome=outcome, attempt=1, usage=Usage(10, 1, 0, 0.5)))
    faults = sum(not outcome.is_final for outcome in CallOutcome)
    assert log.recall(make_call().key) is None
    assert sum_usage(place.scope) == Usage(10 * faults, faults, 0, 0.5 * faults)
    log.record(make_call(outcome=CallOutcome.REFUSED))
    found = log.recall(make_call().key)
    assert found is not None
    assert found.outcome is CallOutcome.REFUSED


def test_an_answer_that_was_too_large_twice_is_recalled_as_that() -> None:
    log = DatabaseCallLog(_place(_step()))
    for attempt in (1, 2):
        assert log.recall(make_call().key) is None
        log.record(make_call(outcome=CallOutcome.TOO_LARGE, attempt=attempt))
    log.record(make_call(outcome=CallOutcome.ANSWERED))
    found = log.recall(make_call().key)
    assert found is not None
    assert (found.outcome, found.attempt) == (CallOutcome.TOO_LARGE, 2)


def test_the_same_call_of_another_run_is_another_call() -> None:
    one, two = (_place(_step_of(name)) for name in ("one", "two"))
    DatabaseCallLog(one).record(make_call())
    assert DatabaseCallLog(two).recall(make_call().key) is None
    assert sum_usage(two.scope) == Usage()


def _step_of(name: str) -> EvolutionStep:
    seed = make_seed(name)
    return make_step(make_run(seed), seed)


def test_a_replay_finds_the_answers_of_the_run_that_it_repeats() -> None:
    step = _step_of("one")
    DatabaseCallLog(_place(step)).record(make_call())
    place = _place(_step_of("two"))
    assert DatabaseCallLog(place, replay_of=step.run).recall(make_call().key) == make_call()
    assert sum_usage(place.scope) == Usage()


def test_a_replay_ends_a_step_where_its_own_budget_had_ended_it() -> None:
    step = _step_of("one")
    log = DatabaseCallLog(_place(step))
    line = f"{STEP_STOP}: 90 of 100 tokens"
    log.record(make_call("a", outcome=CallOutcome.BUDGET, reason=line, usage=Usage()))
    log.record(make_call("b", outcome=CallOutcome.BUDGET, reason="the run's budget is used up"))
    again = DatabaseCallLog(_place(_step_of("two")), replay_of=step.run)
    with pytest.raises(StepBudgetStop, match="90 of 100 tokens"):
        again.recall(make_call("a").key)
    assert again.recall(make_call("b").key) is None, "the run went on from there"
    assert log.recall(make_call("a").key) is None


def test_two_answers_to_one_call_are_one_answer_and_two_bills() -> None:
    place = _place(_step())
    store_call(place, make_call(answer=says("first")))
    store_call(place, make_call(answer=says("second")))
    (pk, kept) = find_call(place.scope, make_call().key) or (0, make_call())
    assert b"first" in kept.response
    late = ModelCall.objects.exclude(pk=pk).get()
    assert (late.outcome, late.reason) == ("cancelled", "another worker had the answer first")
    assert sum_usage(place.scope).usd == pytest.approx(2 * 0.0042)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (Usage(-5, 3, 0, 0.1), Usage(0, 3, 0, 0.1, is_estimated=True)),
        (Usage(5, 3, 0, math.nan), Usage(5, 3, 0, 0.0, is_estimated=True)),
        (Usage(5, 3, 0, math.inf), Usage(5, 3, 0, 0.0, is_estimated=True)),
        (Usage(2**80, 3, 0, -1.0), Usage(2**53, 3, 0, 0.0, is_estimated=True)),
    ],
)
def test_nonsense_of_an_endpoint_spoils_no_sum(said: Usage, kept: Usage) -> None:
    place = _place(_step())
    store_call(place, make_call(usage=said, seconds=math.nan))
    assert sum_usage(place.scope) == kept


def test_what_no_database_takes_is_kept_in_the_bodies_and_spelt_in_the_lines() -> None:
    place = _place(_step())
    text = "a\x00b \ud800 \x1b[31mred"
    call = dataclasses.replace(
        make_call(messages=[user(text)], reason=text), place=text, model=text, response=b"\xff\x00"
    )
    store_call(place, call)
    found = find_call(Q(run=place.run), call.key)
    assert found is not None
    assert (found[1].request, found[1].response) == (call.request, b"\xff\x00")
    row = ModelCall.objects.get()
    assert row.place == row.reason == "a\\x00b \\ud800 \\x1b[31mred"
    assert "a\\x00b \\ud800 red" in row.text


def test_calls_belong_to_the_candidate_that_they_led_to() -> None:
    seed = make_seed()
    first, second = make_child(seed, "Once."), make_child(seed, "Twice.")
    step = first.step
    assert step is not None
    log = DatabaseCallLog(_place(step))
    log.record(make_call("plan"))
    log.record(make_call("modify/1"))
    log.give_to(first)
    log.record(make_call("modify/2"))
    log = DatabaseCallLog(_place(step))  # a worker died here; the step begins anew
    for place in ("plan", "modify/1"):
        assert log.recall(make_call(place).key)
    log.give_to(first)
    assert log.recall(make_call("modify/2").key)
    log.record(make_call("modify/2b"))
    log.give_to(second)
    led = {row.place: row.environment_id for row in ModelCall.objects.all()}
    assert led == {
        "plan": first.pk,
        "modify/1": first.pk,
        "modify/2": second.pk,
        "modify/2b": second.pk,
    }


@pytest.mark.django_db(transaction=True)
def test_any_thread_may_ask_and_none_leaves_a_connection_behind() -> None:
    place = _place(_step())
    call = make_call()

    async def ask() -> CallRecord | None:
        log.record(call)
        assert log.recall(call.key) == call
        return await asyncio.to_thread(log.recall, call.key)

    before = threading.active_count()
    with DatabaseCallLog(place) as log:
        assert asyncio.run(ask()) == call
    assert threading.active_count() == before
