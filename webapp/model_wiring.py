"""The composition root's other half: which models play the roles, and what they are given.

Loaded only when a model is used, or asked about: the clients of the providers take seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from django.conf import settings

from evolution.agents.means import Means
from evolution.authors.llm import LlmAuthor
from evolution.llm.budget import Budget, Limits
from evolution.llm.calls import CallLog, Role
from evolution.llm.endpoints import ModelTable, key_of, model_label, parse_models
from evolution.llm.gateway import Gateway
from evolution.llm.lines import Lines
from evolution.llm.pricing import refuse_unpriced
from evolution.ports import Author
from webapp import wiring
from webapp.adapters.calls import DatabaseCallLog
from webapp.adapters.errand_roles import ask_role
from webapp.adapters.measuring import Bench
from webapp.adapters.workbench import SandboxWorkbench
from webapp.model_forecast import ERRAND_ROLES, model_table, of_steps, prices
from webapp.models import Errand, ErrandKind, EvolutionRun, EvolutionStep, SolverKind
from webapp.selectors.spend import seconds_at_work
from webapp.services.attempts import find_solver
from webapp.services.budgets import budget_of, step_budget_of
from webapp.services.calls import Place
from webapp.services.errands import Done, budget_of_errand


@lru_cache(maxsize=1)
def lines() -> Lines:
    """The ways to the endpoints, one set per process. Keys are read from its environment."""
    return Lines(os.environ)


def gateway(log: CallLog, run: EvolutionRun) -> Gateway:
    """A way to the models of a step, within the budget of its run. Raises ModelConfigError."""
    is_replay = run.replay_of_id is not None
    table = parse_models(settings.RATCHET_MODELS) if is_replay else model_table()
    return Gateway(
        of_steps(table),
        log,
        lines(),
        budget=Budget(budget_of(run), step_budget_of(run), run_seconds=_clock_of(run)),
        prices=prices(),
        is_replay=is_replay,
    )


@contextmanager
def llm_author(step: EvolutionStep, log: CallLog) -> Iterator[Author]:
    """The author that asks models, for one step. Raises ModelConfigError."""
    party = f"run {step.run_id}"
    runner = wiring.runner(party)
    with gateway(log, step.run) as models:
        bench = SandboxWorkbench(runner, party=party)
        yield LlmAuthor(Means(models, bench, runner, log=log))


def _clock_of(run: EvolutionRun) -> Callable[[], float]:
    """How long a run was at work, without asking the database again and again."""
    before, started = seconds_at_work(run), time.monotonic()
    return lambda: before + time.monotonic() - started


def carry_out(errand: Errand) -> Done:
    """Ask the role of an errand, within its budget. Raises ModelConfigError."""
    gateway_of = _gateways(ERRAND_ROLES[ErrandKind(errand.kind)], budget_of_errand(errand))
    party = "a person"
    runner = wiring.runner(party)
    with (
        DatabaseCallLog(Place(environment=errand.environment)) as log,
        gateway_of(log) as models,
    ):
        bench = SandboxWorkbench(runner, party=party)
        return ask_role(errand, Means(models, bench, runner, log=log))


def solver_bench(budget: Limits, sandbox: str = "") -> Bench:
    """What attempts of the solver are made with; all of them share `budget`.

    Raises ModelConfigError when no model plays the solver, or when US dollars are limited and its
    price is not known.
    """
    return Bench(
        _gateways(Role.SOLVER, budget),
        wiring.runner("a person", sandbox),
        find_solver(model_label(model_table().spec(Role.SOLVER)), SolverKind.LLM),
    )


def _gateways(role: Role, budget: Limits) -> Callable[[CallLog], Gateway]:
    """Ways to the model of one role, for what is no run's; all of them share `budget`.

    Raises ModelConfigError when no model plays it, or when US dollars are limited and its price
    is not known.
    """
    spec = model_table().spec(role)
    key_of(spec, os.environ)  # raises before anything was begun
    if budget.usd is not None:
        refuse_unpriced(prices(), [spec])
    table = ModelTable(((role, spec),))
    shared = Budget(Limits(), budget)  # one "step" for all
    return lambda log: Gateway(table, log, lines(), budget=shared, prices=prices())
