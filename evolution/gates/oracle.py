"""`oracle`: does the reference solution earn full reward, every time?"""

from __future__ import annotations

from evolution.bundle import BundleError
from evolution.contracts import GateResult
from evolution.difficulty.posterior import flake_bound
from evolution.gates.answers import (
    ENDS,
    failed,
    inconclusive,
    machinery_fault,
    named,
    observe,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import oracle_asks
from sandbox.contracts import Outcome, SolverEnd, TrialResult

GATE = "oracle"


def check(case: Case) -> Steps:
    """Run it once; when that earns full reward, the other times side by side."""
    try:
        asks = oracle_asks(case)
    except BundleError as error:
        return inconclusive(GATE, f"no reference solution can be run: {error}")
    results = yield asks[:1]
    if complaint(asks[0], results[0]) is None and machinery_fault(results) is None:
        results += yield asks[1:]
    return judge(asks, results)


def judge(asks: tuple[Ask, ...], results: tuple[TrialResult, ...]) -> GateResult:
    """The gate's answer from the runs that were made."""
    ran = list(zip(asks, results, strict=False))
    evidence = [observe(f"oracle, run {ask.repetition}", ask, result) for ask, result in ran]
    good = [result for ask, result in ran if complaint(ask, result) is None]
    for ask, result in ran:
        if result.outcome is not Outcome.INFRA_ERROR and (said := complaint(ask, result)):
            flaky = f" on run {ask.repetition} after {len(good)} that did not" if good else ""
            return failed(GATE, said + flaky, evidence, **_figures(results, len(good)))
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault, evidence, **_figures(results, len(good)))
    bound = flake_bound(len(results))
    return passed(
        GATE,
        f"full reward in {len(results)} of {len(results)} fresh sandboxes "
        f"(flaky at most {bound:.0%} with 95 % confidence){_unsteady(results)}",
        evidence,
        **_figures(results, len(good)),
    )


def complaint(ask: Ask, result: TrialResult) -> str | None:
    """What is wrong with the bundle after this run of its own solution, in one line, or None."""
    if result.outcome in (Outcome.INFRA_ERROR, Outcome.CANCELLED):
        return None
    if result.solver_end is SolverEnd.TIMEOUT:
        seconds = ask.spec.solver.timeout_seconds
        return f"the reference solution does not end within the {seconds:g} s that it is given"
    if result.solver_end is not SolverEnd.DONE:
        return f"the reference solution was {ENDS[result.solver_end]}"
    if result.outcome is Outcome.INVALID_REWARD:
        return f"the tests leave no usable reward for the reference solution: {result.error}"
    if result.outcome is Outcome.FAIL:
        checks = f"; failed: {named(result.failed_checks)}" if result.failed_checks else ""
        status = result.solver_exit_status
        exited = f" (it exits with status {status})" if status else ""
        return f"the reference solution earns {result.reward:g}, not 1{exited}{checks}"
    return None


def _figures(results: tuple[TrialResult, ...], good: int) -> dict[str, float]:
    bound = flake_bound(len(results)) if good == len(results) else 1.0
    return {
        "runs": float(len(results)),
        "passed": float(good),
        "flaky_at_most": round(bound, 4),
        "states": float(len({result.state_digest for result in results})),
    }


def _unsteady(results: tuple[TrialResult, ...]) -> str:
    """Said where the runs leave different artifacts: equivalents are then harder to tell."""
    states = {result.state_digest for result in results}
    return "" if len(states) <= 1 else f"; {len(states)} different states were left"
