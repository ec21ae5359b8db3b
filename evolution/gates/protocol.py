"""The protocol: which gates are asked, in which order, and what they say together.

The cheap gates are asked one after another, and the first that does not pass ends it: those first
that look at files alone. The expensive ones share the pool, so that a repair sees all their
answers. `policy` says which gates are asked of whom, and which of them block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from evolution.gates.questions import question
from evolution.ports import GateMemory, TrialLog, TrialRunner
from sandbox.contracts import Image

__all__ = ["GATES", "PROTOCOL_VERSION", "Depth", "verify", "verify_bundle"]

WORKERS = 2
"""Trials at once of one verification, unless said otherwise."""

Check = Callable[[Case], Steps]

STATIC: tuple[tuple[str, Callable[[Case], GateResult]], ...] = (
    (format.GATE, format.check),
    (novel.GATE, novel.check),
    (leak.GATE, leak.check),
)
FORESEEN: tuple[tuple[str, Callable[[Case], GateResult | None]], ...] = (
    (sequence.GATE, sequence.foreseen),
)
"""Failures that the files alone give away, of gates that are asked in their turn otherwise."""
FIRST_LOOK: tuple[tuple[str, Check], ...] = ((nop.GATE, nop.first_look),)
"""Failures that a single sandbox gives away."""
STEPWISE: tuple[tuple[str, Check], ...] = (
    (oracle.GATE, oracle.check),
    (nop.GATE, nop.check),
    (sequence.GATE, sequence.check),
    (demand.GATE, demand.check),
    (contract.GATE, contract.check),
    (headroom.GATE, headroom.check),
)
TOGETHER: tuple[tuple[str, Check], ...] = (
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
    memory: GateMemory | None = None,
    pool: Executor | None = None,
    workers: int = WORKERS,
) -> Verdict:
    """Put a case before the gates. Trials run in `pool`, or in a new one of `workers` threads.

    What `memory` recalls is not asked again. It and the log are called from this thread only.
    Broken machinery makes a gate inconclusive; an exception that escapes a runner passes through.
    """
    if pool is None:
        with ThreadPoolExecutor(workers, thread_name_prefix="trial") as own:
            return _Protocol(case, runner, log, own, memory).ask_all()
    return _Protocol(case, runner, log, pool, memory).ask_all()


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
    policy: Policy | None = None,
    memory: GateMemory | None = None,
    pool: Executor | None = None,
    workers: int = WORKERS,
) -> Verdict:
    """Verify an environment by itself: a seed, or one that was made earlier.

    Unless a `policy` is given, generation 0 is judged by the one for imported environments.
    Without `mutation` the demand gate is not applicable; without `parent` the parent's solution is
    not tried. `others` are bundles by name that it must not repeat.
    """
    policy = policy or (Policy.MADE if subject.generation else Policy.IMPORTED)
    case = Case(
        subject, config or StepConfig(seed=0), policy, mutation, parent, depth=depth, others=others
    )
    return verify(case, runner, log, memory=memory, pool=pool, workers=workers)


class _Protocol:
    """One verification at work: what was answered so far."""

    def __init__(
        self,
        case: Case,
        runner: TrialRunner,
        log: TrialLog,
        pool: Executor,
        memory: GateMemory | None,
    ) -> None:
        self.case, self.runner, self.log, self.memory = case, runner, log, memory
        self.desk = Desk(runner, log, pool)
        self.images: tuple[Image, ...] = ()
        self.answers: list[GateResult] = []

    def ask_all(self) -> Verdict:
        """The gates in their order, to the first of the cheap ones that does not pass."""
        case = self.case
        for name, judge in (*STATIC, *FORESEEN):
            said = judge(case) if case.is_asked(name) else None
            if said is not None and not self._is_open(said):
                return verdict_of(self.answers)
        built, self.images = build.check(case, self.runner)
        if not self._is_open(built):
            return verdict_of(self.answers)
        for result in self._settle(FIRST_LOOK):
            is_failure = result.status is GateStatus.FAILED and not result.source
            if is_failure and not self._is_open(result):
                return verdict_of(self.answers)
        for name, check in STEPWISE:
            if not all(map(self._is_open, self._settle(((name, check),)))):
                return verdict_of(self.answers)
        for result in self._settle(TOGETHER):
            self._is_open(result)
        return verdict_of(self.answers)

    def _is_open(self, result: GateResult) -> bool:
        """Note a gate's answer; whether the next one is worth asking."""
        result = replace(result, is_blocking=self.case.is_blocking(result.gate))
        self.answers.append(result)
        self.log.gate(result)
        return not result.is_blocking or result.status in _GOOD

    def _settle(self, gates: Iterable[tuple[str, Check]]) -> list[GateResult]:
        """What these gates answer, or have answered before, in their order."""
        said = {answer.gate for answer in self.answers}
        gates = ((name, check) for name, check in gates if name not in said)
        checks = {name: check for name, check in gates if self.case.is_asked(name)}
        keys = {name: question(name, self.case, self.images) for name in checks}
        known = {name: self._recall(name, keys[name]) for name in checks}
        asked = {name: check(self.case) for name, check in checks.items() if known[name] is None}
        new = self.desk.settle(asked)
        return [known[name] or self._keyed(new[name], keys[name]) for name in checks]

    def _keyed(self, answer: GateResult, key: str) -> GateResult:
        """The answer with its key, unless a busy machine may be why: then it is asked anew."""
        is_failure = answer.status is GateStatus.FAILED
        if is_failure and self.desk.rests_on_a_time_out(answer):
            return answer
        return replace(answer, cache_key=key)

    def _recall(self, gate: str, key: str) -> GateResult | None:
        if self.memory is None or not key:
            return None
        found = self.memory.recall(gate, key)
        return None if found is None else replace(found, seconds=0.0)


_GOOD = (GateStatus.PASSED, GateStatus.NOT_APPLICABLE)


def verdict_of(answers: list[GateResult]) -> Verdict:
    """What the gates together say: a failure weighs more than broken machinery."""
    blocking = {result.status for result in answers if result.is_blocking}
    for status in (GateStatus.FAILED, GateStatus.INCONCLUSIVE):
        if status in blocking:
            return Verdict(status, tuple(answers))
    return Verdict(GateStatus.PASSED, tuple(answers))
