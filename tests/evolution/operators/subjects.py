"""Environments as operators see them: a small one with its observations written down, and seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from evolution.bundle import Bundle
from evolution.contracts import Demand, Mutation, OracleFacts, Subject
from evolution.execution import nop, solution_solver, trial_spec
from evolution.ports import TrialRunner
from evolution.reading import FoundBundle, find_bundles
from sandbox.contracts import CheckResult, Outcome, SandboxFile, Trace, TrialResult
from tests.evolution.real_sandbox import ORDERS, orders, subject_of

SEEDS = Path(__file__).parents[3] / "seeds"
INPUT = "/app/data/orders.csv"


def small() -> Subject:
    """The small environment, with its oracle's run as it would have been observed."""
    totals: dict[str, int] = {}
    for line in ORDERS.splitlines()[1:]:
        customer, _, amount = line.split(",")
        totals[customer] = totals.get(customer, 0) + int(amount)
    report = json.dumps({**totals, "days": 11}, indent=2, sort_keys=True).encode()
    result = TrialResult(
        Outcome.PASS,
        (("reward", 1.0),),
        checks=(CheckResult("totals", "passed"), CheckResult("days", "passed")),
        state=(SandboxFile("/app/out/report.json", report),),
        trace=Trace(read=(INPUT,), written=("/app/out/report.json",)),
    )
    return replace(subject_of(orders()), oracle=OracleFacts(result, 0.1, None))


def after(parent: Subject, mutation: Mutation) -> Subject:
    """The child as the next subject, its oracle seen to do what the parent's did."""
    assert parent.oracle is not None
    checks = (*parent.oracle.result.checks, *passed(mutation.demand.checks))
    oracle = replace(parent.oracle, result=replace(parent.oracle.result, checks=checks))
    return Subject(
        mutation.child,
        mutation.sequence,
        (*parent.demands, mutation.demand),
        parent.root_instruction,
        parent.generation + 1,
        oracle,
    )


def passed(names: Iterable[str]) -> tuple[CheckResult, ...]:
    """Checks of these names that passed."""
    return tuple(CheckResult(name, "passed") for name in names)


def seed(slug: str) -> Bundle:
    """A bundled seed."""
    (found,) = find_bundles(SEEDS / slug)
    assert isinstance(found, FoundBundle), found
    return found.bundle


def attempt(
    runner: TrialRunner,
    bundle: Bundle,
    solution: Iterable[SandboxFile] | None,
    *,
    is_traced: bool = False,
) -> TrialResult:
    """One trial by a solution (paths below `solution/`), or by one who does nothing."""
    solver = nop(bundle) if solution is None else solution_solver(bundle, "solver", solution)
    spec = trial_spec(bundle, solver, is_traced=is_traced, keep_state=True)
    result = runner.run(spec)
    assert result.outcome in (Outcome.PASS, Outcome.FAIL, Outcome.INVALID_REWARD), result.error
    return result


def observed(runner: TrialRunner, subject: Subject) -> Subject:
    """The subject with its oracle's traced run, which has to pass."""
    result = attempt(runner, subject.bundle, subject.bundle.folder("solution"), is_traced=True)
    assert result.is_passed, (result.failed_checks, result.solver_output[-500:])
    return replace(subject, oracle=OracleFacts(result, 0.1, result.usage.peak_memory_bytes))


def child_of(runner: TrialRunner, parent: Subject, mutation: Mutation) -> Subject:
    """The child as the next subject, its oracle really run."""
    return observed(runner, after(parent, mutation))


def without(bundle: Bundle, demand: Demand) -> tuple[SandboxFile, ...]:
    """The solution that leaves one demand's adaptation out."""
    put = [edit.file for edit in demand.omit if edit.file is not None]
    gone = [edit.path for edit in demand.omit if edit.file is None]
    return bundle.with_files(put, gone).folder("solution")
