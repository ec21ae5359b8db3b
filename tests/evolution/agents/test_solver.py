"""The terminal solver: its attempts end in normal trials, whatever ends them."""

from __future__ import annotations

import json

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse

from evolution.agents.solver import Ended, Solver, SolverLimits
from evolution.llm.calls import BudgetStop, Role
from evolution.llm.replay import CallMemory
from sandbox.contracts import Outcome, SolverEnd
from sandbox.trial import Runner
from tests.evolution.agents.scripted import ScriptedModels, Speaker, calls, in_turn, says, text_of
from tests.evolution.real_sandbox import REPORT, orders

pytestmark = [pytest.mark.bubblewrap]
WORK = f"mkdir -p out && cat > /tmp/w.py <<'END'\n{REPORT}END\npython3 /tmp/w.py"
SOLVES = in_turn(
    says(calls("run", command="head -2 data/orders.csv; pwd")),
    says("I write the report.", calls("run", command=WORK)),
    says("The report is written."),
)


def solver(
    runner: Runner,
    speaker: Speaker,
    limits: SolverLimits | None = None,
    log: CallMemory | None = None,
) -> Solver:
    """A solver with this model."""
    models = ScriptedModels({Role.SOLVER: speaker})
    return Solver(models, runner, log, limits=limits or SolverLimits())


def test_an_attempt_is_judged_like_any_other_and_its_story_is_kept(runner: Runner) -> None:
    log = CallMemory()
    made = solver(runner, SOLVES, log=log).attempt(orders(), "solve/orders/1")
    assert made.result.outcome is Outcome.PASS, made.result
    assert (made.ended, made.turns, made.commands) == (Ended.DONE, 3, 2)
    steps = made.trajectory["steps"]
    assert isinstance(steps, list)
    assert [step["source"] for step in steps] == ["user", "agent", "agent", "agent"]
    assert steps[1]["tool_calls"][0]["tool_call_id"] == "call-1"
    assert "customer,day,amount" in steps[1]["observation"]["results"][0]["content"]
    lines = made.cast.decode().splitlines()
    assert json.loads(lines[0])["version"] == 2
    assert json.loads(lines[1])[2].startswith("$ head -2 data/orders.csv")

    known = len(log.calls)
    again = solver(runner, SOLVES, log=log).attempt(orders(), "solve/orders/1")
    assert again.result.outcome is Outcome.PASS
    assert again.trajectory == made.trajectory
    assert len(log.calls) == known


def test_the_tests_judge_what_is_there_when_a_limit_strikes(runner: Runner) -> None:
    def busy(messages: list[ModelMessage]) -> ModelResponse:
        return says(calls("run", command=WORK if len(messages) < 2 else "sleep 30"))

    limits = SolverLimits(turns=9, seconds=3.0)
    made = solver(runner, busy, limits).attempt(orders(), "solve/orders/2")
    assert made.ended is Ended.TIMEOUT
    assert made.result.outcome is Outcome.PASS
    assert made.result.solver_end is SolverEnd.TIMEOUT
    made = solver(
        runner, in_turn(says(calls("run", command="true"))), SolverLimits(turns=2)
    ).attempt(orders(), "solve/orders/3")
    assert (made.ended, made.result.outcome) == (Ended.TURNS, Outcome.FAIL)


def test_a_stop_of_the_budget_is_no_attempt(runner: Runner) -> None:
    def stopped(messages: list[ModelMessage]) -> ModelResponse:
        assert "Do this task" in text_of(messages)
        raise BudgetStop("10 USD are used up")

    with pytest.raises(BudgetStop):
        solver(runner, stopped).attempt(orders(), "solve/orders/4")
