"""The hard stop: what is recorded, in flight and expected must fit together."""

from __future__ import annotations

import pytest

from evolution.llm.breaker import FIRST_PAUSE, LONGEST_PAUSE, THRESHOLD, Breaker
from evolution.llm.budget import Budget, Limits
from evolution.llm.calls import BudgetStop, CallOutcome, CallRecord, Role, StepBudgetStop, Usage
from evolution.llm.replay import CallMemory


def took(usage: Usage) -> CallRecord:
    """A call on record that took so much."""
    answered = CallOutcome.ANSWERED
    return CallRecord("k", "here", Role.JUDGE, "tiny", "", 1, answered, "", b"", b"", usage, 0.1)


def test_what_is_in_flight_counts() -> None:
    budget, log = Budget(Limits(tokens=1000)), CallMemory()

    def fits(spent: Usage) -> None:
        budget.reserve(spent, Usage(300, 100))

    first = log.reserve(Usage(300, 100), 60, fits)
    log.reserve(Usage(300, 100), 60, fits)
    with pytest.raises(BudgetStop, match="800 of 1000 tokens"):
        log.reserve(Usage(300, 100), 60, fits)
    log.record(took(Usage(50, 10)), first)
    log.reserve(Usage(300, 100), 60, fits)


def test_what_a_step_has_in_flight_counts_for_the_step() -> None:
    budget = Budget(Limits(), Limits(tokens=1000))
    budget.reserve(Usage(), Usage(300, 100))
    budget.reserve(Usage(), Usage(300, 100))
    with pytest.raises(StepBudgetStop, match="800 of 1000 tokens"):
        budget.reserve(Usage(), Usage(300, 100))
    budget.settle(Usage(300, 100), Usage(50, 10))
    budget.reserve(Usage(), Usage(300, 100))


def test_each_limit_stops_by_its_name() -> None:
    with pytest.raises(BudgetStop, match=r"0\.9000 of 1\.0000 USD"):
        Budget(Limits(usd=1.0)).reserve(Usage(usd=0.9), Usage(usd=0.2))
    with pytest.raises(BudgetStop, match="61 of 60 seconds"):
        Budget(Limits(seconds=60), run_seconds=lambda: 61).reserve(Usage(), Usage())
    Budget(Limits(usd=1.0)).reserve(Usage(usd=0.9), Usage(usd=0.1))


def test_a_steps_own_budget_ends_the_step_only() -> None:
    now = [0.0]
    budget = Budget(Limits(tokens=10**6), Limits(tokens=500, seconds=10), clock=lambda: now[0])
    budget.reserve(Usage(), Usage(100, 100))
    budget.settle(Usage(100, 100), Usage(100, 150))
    budget.count(Usage(100, 100))
    assert budget.step_spent == Usage(200, 250)
    with pytest.raises(StepBudgetStop, match="450 of 500 tokens"):
        budget.reserve(Usage(), Usage(100, 0))
    now[0] = 11
    with pytest.raises(StepBudgetStop, match="seconds"):
        budget.reserve(Usage(), Usage())


def test_the_breaker_opens_after_faults_in_a_row_and_probes_once() -> None:
    breaker = Breaker()
    for _ in range(THRESHOLD - 1):
        breaker.failed(0)
    breaker.succeeded()
    for _ in range(THRESHOLD):
        assert breaker.refusal(0) is None
        breaker.failed(0)
    assert breaker.refusal(1) == FIRST_PAUSE - 1
    assert breaker.refusal(FIRST_PAUSE) is None
    assert breaker.refusal(FIRST_PAUSE) is not None, "one call decides, the others wait"
    breaker.failed(FIRST_PAUSE)
    assert breaker.refusal(FIRST_PAUSE) == 2 * FIRST_PAUSE, "twice as long as before"
    assert breaker.refusal(3 * FIRST_PAUSE) is None
    breaker.succeeded()
    assert breaker.refusal(3 * FIRST_PAUSE) is None


def test_the_breakers_pauses_have_an_end_and_a_lost_probe_blocks_nobody() -> None:
    breaker = Breaker()
    now = 0.0
    for _ in range(12):
        breaker.failed(now, at_once=True)
        now = breaker.open_until
        assert breaker.refusal(now) is None
    assert breaker.open_until - now <= 0
    breaker.failed(now)
    assert breaker.refusal(now) == LONGEST_PAUSE
    now = breaker.open_until
    assert breaker.refusal(now) is None
    breaker.abandoned()
    assert breaker.refusal(now) is None
