"""An attempt by the solver with a model, from its calls to its row among the measured trials."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Sum

from evolution.agents.solver import Attempted, Ended, Solver
from evolution.llm.calls import CallLog
from evolution.llm.gateway import Gateway
from sandbox.base import AttemptRunner
from sandbox.contracts import Outcome
from webapp.adapters.calls import DatabaseCallLog
from webapp.models import Environment, MeasuredTrial, ModelCall
from webapp.models import Solver as SolverRow
from webapp.services.attempts import Attempt, measured_name, record_attempt
from webapp.services.calls import Place
from webapp.store import load_bundle

GRADED = (Outcome.PASS, Outcome.FAIL)
SOURCE = "measured here"


@dataclass(frozen=True, slots=True)
class Bench:
    """What attempts are made with: a way to the model for a log of calls, and sandboxes."""

    gateway_for: Callable[[CallLog], Gateway]
    runner: AttemptRunner
    solver: SolverRow


def attempt(bench: Bench, environment: Environment, number: int) -> MeasuredTrial | None:
    """Make attempt `number` at an environment; one that was broken off goes on where it was.

    None when another process made it meanwhile. BudgetStop, StepBudgetStop and ModelUnavailable
    pass through; then nothing is counted, and what was answered is kept.
    """
    place = f"solve/{bench.solver.name}/{environment.digest}/{number}"
    with (
        DatabaseCallLog(Place(environment=environment)) as log,
        bench.gateway_for(log) as models,
    ):
        made = Solver(models, bench.runner, log=log).attempt(load_bundle(environment), place)
    rows = ModelCall.objects.filter(
        run=None, environment=environment, place__startswith=f"{place}/"
    )
    usd = rows.aggregate(usd=Sum("usd"))["usd"] or 0.0
    name = measured_name(environment)
    return record_attempt(bench.solver, environment, name, number, _kept(made, usd))


def _kept(made: Attempted, usd: float) -> Attempt:
    result = made.result
    counts = result.outcome in GRADED
    cause = "" if made.ended is Ended.DONE else made.ended.value
    return Attempt(
        is_passed=result.outcome is Outcome.PASS,
        counts=counts,
        source=SOURCE,
        cause=cause if counts else result.outcome.value,
        reward=result.reward if counts else None,
        input_tokens=made.input_tokens,
        output_tokens=made.output_tokens,
        usd=usd,
        seconds=result.seconds,
        trajectory=json.dumps(made.trajectory).encode(),
        cast=made.cast,
        output=result.verifier_output,
    )
