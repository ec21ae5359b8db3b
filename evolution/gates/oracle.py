"""`oracle`: does the reference solution earn full reward, every time?

Some runs that agree prove little, so the gate decides on how often the solution may still fail:
the upper 95 % bound from all runs. In the full protocol that has to be 15 % at most, which 20
clean runs give; otherwise it may be no more than what clean runs would leave.
"""

from __future__ import annotations

from evolution.bundle import BundleError
from evolution.contracts import GateResult
from evolution.difficulty.posterior import flake_bound, lower_bound, upper_bound
from evolution.execution import SOLVER_CAP_SECONDS, VERIFIER_CAP_SECONDS
from evolution.gates.answers import (
    ENDS,
    failed,
    inconclusive,
    machinery_fault,
    named,
    observe,
    passed,
)
from evolution.gates.case import Case, Depth
from evolution.gates.desk import MACHINERY, TRIED, Ask, Steps
from evolution.gates.specs import oracle_asks
from sandbox.contracts import Outcome, SolverEnd, TrialResult

GATE = "oracle"
MOST_FLAKY = 0.15
"""The highest bound on failures in the full protocol."""
CONFIDENCE = 0.95


def check(case: Case) -> Steps:
    """Run it once; when that earns full reward, the other times side by side."""
    try:
        asks = oracle_asks(case)
    except BundleError as error:
        return inconclusive(GATE, f"no reference solution can be run: {error}")
    results = yield asks[:1]
    if complaint(asks[0], results[0]) is None and machinery_fault(results) is None:
        results += yield asks[1:]
    limit = MOST_FLAKY if case.depth is Depth.FULL else flake_bound(len(asks))
    return judge(asks, results, limit)


def judge(asks: tuple[Ask, ...], results: tuple[TrialResult, ...], limit: float) -> GateResult:
    """The gate's answer from the runs that were made; `limit` is the highest bound on failures."""
    ran = list(zip(asks, results, strict=False))
    evidence = [observe(f"oracle, run {ask.repetition}", ask, result) for ask, result in ran]
    broken = [(a, said) for a, r in ran if (said := complaint(a, r)) is not None]
    unknown = [r for a, r in ran if machinery_fault((r,)) and complaint(a, r) is None]
    count = len(results) - len(unknown)
    bound = upper_bound(len(broken), count, CONFIDENCE) if count else 1.0
    figures = _figures(results, count, len(broken), bound)
    if broken and (bound > limit or count == len(broken)):
        ask, said = broken[0]
        flaky = _flaky(ask, count, len(broken))
        return failed(GATE, said + flaky, evidence, **figures)
    if fault := machinery_fault(unknown):
        return inconclusive(GATE, fault, evidence, **figures)
    reason = (
        f"full reward in {count - len(broken)} of {count} fresh sandboxes "
        f"(flaky at most {bound:.0%} with 95 % confidence){_unsteady(results)}"
    )
    if bound > limit:
        return inconclusive(GATE, f"{reason}: too few runs to tell", evidence, **figures)
    return passed(GATE, reason, evidence, **figures)


def _flaky(ask: Ask, count: int, broken: int) -> str:
    """How often it fails, where it does not always."""
    if broken == count:
        return ""
    low, high = (bound(broken, count, CONFIDENCE) for bound in (lower_bound, upper_bound))
    return (
        f"; so on run {ask.repetition}, and in {broken} of {count} runs: flaky, "
        f"between {low:.0%} and {high:.0%}"
    )


def complaint(ask: Ask, result: TrialResult) -> str | None:
    """What is wrong with the bundle after this run of its own solution, in one line, or None."""
    if result.outcome in MACHINERY:
        return _endless(ask, result)
    if result.solver_end is SolverEnd.TIMEOUT:
        limit = ask.spec.solver.timeout_seconds
        spent = dict(result.phases).get("solver", limit)
        return (
            f"the reference solution does not end within the {limit:g} s that it is given: "
            f"its solver phase was ended after {spent:.1f} s ({_given(limit)})"
        )
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


def _endless(ask: Ask, result: TrialResult) -> str | None:
    """One line when the tests ran into their own limit in every try; once may be this machine."""
    limit = ask.spec.verifier.timeout_seconds
    tries = 1 + result.notes.count(f"{TRIED}{result.error}")
    if dict(result.phases).get("verifier", 0.0) < limit or tries <= ask.retries:
        return None
    whose = "no verifier phase of a gate is longer"
    if limit < VERIFIER_CAP_SECONDS:
        whose = f"task.toml says so: [verifier] timeout_sec = {limit:g}"
    return (
        f"the tests do not end within the {limit:g} s that they are given, in {tries} of {tries} "
        f"fresh sandboxes ({whose})"
    )


def _given(limit: float) -> str:
    """Whose limit that is."""
    if limit >= SOLVER_CAP_SECONDS:
        return f"no solver phase of a gate is longer than {limit:g} s"
    return f"task.toml says so: [agent] timeout_sec = {limit:g}"


def _figures(
    results: tuple[TrialResult, ...], count: int, broken: int, bound: float
) -> dict[str, float]:
    return {
        "runs": float(count),
        "passed": float(count - broken),
        "failures": float(broken),
        "flaky_at_most": round(bound, 4),
        "states": float(len({result.state_digest for result in results})),
    }


def _unsteady(results: tuple[TrialResult, ...]) -> str:
    """Said where the runs leave different artifacts: equivalents are then harder to tell."""
    states = {result.state_digest for result in results}
    return "" if len(states) <= 1 else f"; {len(states)} different states were left"
