"""The protocol: which gates are asked, in which order, and what they say together.

The cheap gates are asked one after another, and the first that does not pass ends it: those first
that look at files alone. The expensive ones share the pool, so that a repair sees all their
answers. `policy` says which gates are asked of whom, and which of them block.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus, Mutation, StepConfig, Subject, Verdict
from evolution.gates import (
    alternatives,
    build,
    contract,
    demand,
    demands,
    exploits,
    format,
    headroom,
    hermetic,
    image_leak,
    leak,
    mutants,
    nop,
    novel,
    oracle,
    parent_solution,
    sequence,
)
from evolution.gates.case import PROTOCOL_VERSION, Case, Depth, Policy
from evolution.gates.desk import Desk, Steps
from evolution.ports import TrialLog, TrialRunner

__all__ = ["GATES", "PROTOCOL_VERSION", "Depth", "verify", "verify_bundle"]

WORKERS = 2
"""Trials at once of one verification, unless said otherwise."""

STATIC: tuple[tuple[str, Callable[[Case], GateResult]], ...] = (
    (format.GATE, format.check),
    (sequence.GATE, sequence.check),
    (novel.GATE, novel.check),
    (leak.GATE, leak.check),
)
STEPWISE: tuple[tuple[str, Callable[[Case], Steps]], ...] = (
    (oracle.GATE, oracle.check),
    (nop.GATE, nop.check),
    (demand.GATE, demand.check),
    (contract.GATE, contract.check),
    (headroom.GATE, headroom.check),
)
TOGETHER: tuple[tuple[str, Callable[[Case], Steps]], ...] = (
    (demands.GATE, demands.check),
    (parent_solution.GATE, parent_solution.check),
    (mutants.GATE, mutants.check),
    (image_leak.GATE, image_leak.check),
    (hermetic.GATE, hermetic.check),
    (alternatives.GATE, alternatives.check),
    (exploits.GATE, exploits.check),
)
GATES = (
    *(name for name, _ in STATIC),
    build.GATE,
    *(name for name, _ in (*STEPWISE, *TOGETHER)),
)
"""All gates, in the order in which they are asked."""


def verify(
    case: Case,
    runner: TrialRunner,
    log: TrialLog,
    *,
    pool: Executor | None = None,
    workers: int = WORKERS,
) -> Verdict:
    """Put a case before the gates. Trials run in `pool`, or in a new one of `workers` threads.

    The log is called from this thread only. Broken machinery makes a gate inconclusive; an
    exception that escapes a runner passes through.
    """
    if pool is None:
        with ThreadPoolExecutor(workers, thread_name_prefix="trial") as own:
            return _ask_all(case, runner, log, own)
    return _ask_all(case, runner, log, pool)


def verify_bundle(
    subject: Subject,
    mutation: Mutation | None,
    runner: TrialRunner,
    log: TrialLog,
    config: StepConfig | None = None,
    *,
    parent: Subject | None = None,
    depth: Depth = Depth.QUICK,
    others: tuple[tuple[str, Bundle], ...] = (),
    pool: Executor | None = None,
    workers: int = WORKERS,
) -> Verdict:
    """Verify an environment by itself: a seed, or one that was made earlier.

    Generation 0 is judged by the policy for imported environments. Without `mutation` the demand
    gate is not applicable; without `parent` the parent's solution is not tried. `others` are
    bundles by name that it must not repeat.
    """
    policy = Policy.MADE if subject.generation else Policy.IMPORTED
    case = Case(
        subject, config or StepConfig(seed=0), policy, mutation, parent, depth=depth, others=others
    )
    return verify(case, runner, log, pool=pool, workers=workers)


def _ask_all(case: Case, runner: TrialRunner, log: TrialLog, pool: Executor) -> Verdict:
    answers: list[GateResult] = []

    def is_open(result: GateResult) -> bool:
        """Note a gate's answer; whether the next one is worth asking."""
        result = replace(result, is_blocking=case.is_blocking(result.gate))
        answers.append(result)
        log.gate(result)
        return not result.is_blocking or result.status in _GOOD

    for name, judge in STATIC:
        if case.is_asked(name) and not is_open(judge(case)):
            return verdict_of(answers)
    if not is_open(build.check(case, runner)):
        return verdict_of(answers)
    desk = Desk(runner, log, pool)
    for name, check in STEPWISE:
        if case.is_asked(name) and not is_open(desk.settle({name: check(case)})[name]):
            return verdict_of(answers)
    together = {name: check(case) for name, check in TOGETHER if case.is_asked(name)}
    for result in desk.settle(together).values():
        is_open(result)
    return verdict_of(answers)


_GOOD = (GateStatus.PASSED, GateStatus.NOT_APPLICABLE)


def verdict_of(answers: list[GateResult]) -> Verdict:
    """What the gates together say: a failure weighs more than broken machinery."""
    blocking = {result.status for result in answers if result.is_blocking}
    for status in (GateStatus.FAILED, GateStatus.INCONCLUSIVE):
        if status in blocking:
            return Verdict(status, tuple(answers))
    return Verdict(GateStatus.PASSED, tuple(answers))
