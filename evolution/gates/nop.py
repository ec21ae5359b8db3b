"""`nop`: does doing nothing fail, every time?"""

from __future__ import annotations

from evolution.contracts import GateResult
from evolution.gates.answers import failed, inconclusive, machinery_fault, observe, passed
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import nop_asks
from sandbox.contracts import Outcome, TrialResult

GATE = "nop"


def check(case: Case) -> Steps:
    """Judge the untouched environment."""
    asks = nop_asks(case)
    results = yield asks[:1]
    if results[0].outcome is Outcome.FAIL:
        results += yield asks[1:]
    return judge(asks, results)


def judge(asks: tuple[Ask, ...], results: tuple[TrialResult, ...]) -> GateResult:
    """The gate's answer from the runs that were made."""
    evidence = [
        observe(f"nop, run {ask.repetition}", ask, result)
        for ask, result in zip(asks, results, strict=False)
    ]
    for result in results:
        if result.outcome is Outcome.PASS:
            return failed(GATE, "doing nothing earns full reward", evidence)
        if result.outcome is Outcome.INVALID_REWARD:
            reason = f"the tests leave no usable reward when nothing was done: {result.error}"
            return failed(GATE, reason, evidence)
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault, evidence)
    count = len(results)
    reason = f"doing nothing fails in {count} of {count} fresh sandboxes"
    return passed(GATE, reason, evidence, runs=float(count))
