"""`demands`: do all live demands of the lineage still bite?"""

from __future__ import annotations

from evolution.contracts import Demand, Evidence, GateResult
from evolution.gates.answers import (
    failed,
    inconclusive,
    machinery_fault,
    named,
    not_applicable,
    observe,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import edited, oracle_asks, reference_files, solution_spec
from sandbox.contracts import Outcome, TrialResult

GATE = "demands"


def check(case: Case) -> Steps:
    """Leave one adaptation out at a time: the oracle must pass, every other solution must fail."""
    live = case.subject.demands
    if not live:
        return not_applicable(GATE, "no demand has been added to this environment")
    whole = reference_files(case.bundle)
    left_out = [demand for demand in live if edited(whole, demand.omit) != whole]
    asks = [
        Ask(solution_spec(case.bundle, edited(whole, demand.omit)), f"without:{demand.id}")
        for demand in left_out
    ]
    oracle = oracle_asks(case)[0]
    results = yield (oracle, *asks)
    evidence = [observe("nothing left out", oracle, results[0])]
    evidence += [
        observe(f"without {demand.title}", ask, result)
        for demand, ask, result in zip(left_out, asks, results[1:], strict=True)
    ]
    return judge(live, left_out, results, evidence)


def judge(
    live: tuple[Demand, ...],
    left_out: list[Demand],
    results: tuple[TrialResult, ...],
    evidence: list[Evidence],
) -> GateResult:
    """The gate's answer: which demands bite."""
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault, evidence)
    pairs = zip(left_out, results[1:], strict=True)
    biting = [demand.id for demand, result in pairs if bites(demand, result)]
    silent = [demand.id for demand in live if demand.id not in biting]
    figures = {"bite": float(len(biting)), "total": float(len(live))}
    if not results[0].is_passed:
        return failed(GATE, "the whole solution does not pass", evidence, **figures)
    count = f"{len(biting)} of {len(live)} bite"
    if not silent:
        return passed(GATE, count, evidence, **figures)
    unremovable = [d.id for d in live if d not in left_out]
    why = f"; leaving it out changes nothing: {named(unremovable)}" if unremovable else ""
    return failed(GATE, f"{count}; silent: {named(silent)}{why}", evidence, **figures)


def bites(demand: Demand, result: TrialResult) -> bool:
    """Whether leaving this demand's adaptation out fails, on a check that the demand answers for.

    Where the tests report no checks, a plain failure has to do.
    """
    if result.outcome is not Outcome.FAIL:
        return False
    own = {*demand.checks, *demand.premise}
    return not result.checks or bool(result.failed_checks & own)
