"""`nop`: does doing nothing fail, every time?"""

from __future__ import annotations

from dataclasses import replace

from evolution.contracts import GateResult
from evolution.gates.answers import failed, inconclusive, machinery_fault, observe, passed
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import nop_asks, state_spec
from sandbox.contracts import Outcome, TrialResult

GATE = "nop"


def check(case: Case) -> Steps:
    """Judge the untouched environment."""
    asks = nop_asks(case)
    results = yield asks[:1]
    if results[0].outcome is Outcome.FAIL:
        results += yield asks[1:]
    return judge(asks, results)


def first_look(case: Case) -> Steps:
    """Whether one run gives away that nothing has to be done, before anything else is run.

    A clean copy of the image is judged as it is: that takes one sandbox where an idle solver and
    its judge would take two.
    """
    ask = nop_asks(case)[0]
    if ask.spec.verifier.is_separate and ask.spec.verifier.image is None:
        ask = Ask(state_spec(case.bundle, ()), "untouched")
    results = yield (replace(ask, retries=0),)
    return judge((ask,), results)


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
