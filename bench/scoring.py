"""Putting bundles before the gates, and what the answers say of the gates."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bench.corpus.entries import Entry
from evolution.bundle import BundleError
from evolution.contracts import GateResult, GateStatus, StepConfig, Subject
from evolution.difficulty.posterior import lower_bound, upper_bound
from evolution.gates.protocol import Depth, verify_bundle
from evolution.memory import MemoryLog
from sandbox.base import TrialRunner
from sandbox.contracts import TrialResult

CONFIDENCE = 0.95


@dataclass(slots=True)
class Spent:
    """What one gate's trials took in one matrix."""

    sandboxes: int = 0
    core_seconds: float = 0.0

    def add(self, other: Spent) -> None:
        """Add another one's."""
        self.sandboxes += other.sandboxes
        self.core_seconds += other.core_seconds


class _Caught(Exception):
    """A gate has failed, and no more is wanted."""


@dataclass(slots=True)
class CountingLog(MemoryLog):
    """A log that counts what each gate's trials took, and may end at the first failure."""

    is_short: bool = False
    spent: dict[str, Spent] = field(default_factory=dict)

    def record(
        self, key: str, solver: str, repetition: int, gate: str, result: TrialResult
    ) -> None:
        """See `TrialLog.record`."""
        MemoryLog.record(self, key, solver, repetition, gate, result)
        cost = Spent(result.sandboxes, result.usage.cpu_seconds or 0.0)
        self.spent.setdefault(gate, Spent()).add(cost)

    def gate(self, result: GateResult) -> None:
        """See `TrialLog.gate`. Raises _Caught at the first failure when that is all."""
        MemoryLog.gate(self, result)
        if self.is_short and result.status is GateStatus.FAILED:
            raise _Caught


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gates said of one entry."""

    entry: Entry
    gates: tuple[GateResult, ...]
    spent: dict[str, Spent]
    seconds: float

    def _named(self, status: GateStatus) -> tuple[str, ...]:
        return tuple(gate.gate for gate in self.gates if gate.status is status)

    @property
    def failed(self) -> tuple[str, ...]:
        """The gates that failed, blocking or not."""
        return self._named(GateStatus.FAILED)

    @property
    def inconclusive(self) -> tuple[str, ...]:
        """The gates that could not say."""
        return self._named(GateStatus.INCONCLUSIVE)

    @property
    def is_wrong(self) -> bool:
        """Whether a sound bundle was flagged, or a defect was not."""
        return bool(self.failed) is self.entry.is_sound

    @property
    def sandboxes(self) -> int:
        """How many sandboxes were started."""
        return sum(spent.sandboxes for spent in self.spent.values())


def _instruction(entry: Entry) -> str:
    """The instruction; empty where it is missing, which the gates have to say."""
    try:
        return entry.bundle.instruction
    except BundleError:
        return ""


def judge(entry: Entry, runner: TrialRunner, *, is_short: bool) -> Answer:
    """Put one entry before all gates; with `is_short`, a defect only until a gate fails."""
    generation = 1 if entry.origin == "made" else 0
    subject = Subject(entry.bundle, (), (), _instruction(entry), generation=generation)
    log = CountingLog(is_short=is_short and not entry.is_sound)
    started = time.monotonic()
    with suppress(_Caught):
        verify_bundle(
            subject,
            None,
            runner,
            log,
            StepConfig(seed=0),
            depth=Depth.FULL,
            others=entry.others,
            workers=1,
        )
    return Answer(entry, tuple(log.gates), log.spent, time.monotonic() - started)


def judge_all(
    entries: Sequence[Entry],
    runner: TrialRunner,
    jobs: int,
    told: Callable[[Answer], None],
    *,
    is_short: bool,
) -> list[Answer]:
    """Judge all entries, so many at once; `told` hears of each as it is done."""
    answers: list[Answer] = []
    with ThreadPoolExecutor(jobs, thread_name_prefix="matrix") as pool:
        for answer in pool.map(lambda entry: judge(entry, runner, is_short=is_short), entries):
            answers.append(answer)
            told(answer)
    return answers


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of some, with its 95 % interval by Clopper and Pearson."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """The share itself; None of nothing."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval, two-sided."""
        if not self.of:
            return 0.0, 1.0
        level = 1.0 - (1.0 - CONFIDENCE) / 2
        return lower_bound(self.count, self.of, level), upper_bound(self.count, self.of, level)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.interval
        return {
            "count": self.count,
            "of": self.of,
            "share": self.share,
            "low": round(low, 4),
            "high": round(high, 4),
        }

    def __str__(self) -> str:
        low, high = self.interval
        share = "-" if self.share is None else f"{self.share:.1%}"
        return f"{self.count}/{self.of} = {share} [{low:.1%}, {high:.1%}]"


def recall(answers: Iterable[Answer]) -> Rate:
    """How many of the defects were caught."""
    own = [answer for answer in answers if not answer.entry.is_sound]
    return Rate(sum(bool(answer.failed) for answer in own), len(own))


def false_alarms(answers: Iterable[Answer]) -> Rate:
    """How many of the sound ones were flagged by any gate."""
    own = [answer for answer in answers if answer.entry.is_sound]
    return Rate(sum(bool(answer.failed) for answer in own), len(own))


def per_kind(answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    """By kind of defect: what was caught, by which gates, and where gates could not say."""
    found: dict[str, dict[str, Any]] = {}
    for kind in sorted({a.entry.label for a in answers if not a.entry.is_sound}):
        own = [answer for answer in answers if answer.entry.label == kind]
        by = Counter(answer.failed[0] for answer in own if answer.failed)
        silent = sum(bool(a.inconclusive) and not a.failed for a in own)
        found[kind] = recall(own).as_dict() | {"by": dict(by), "inconclusive": silent}
    return found


def per_gate(answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    """By gate: defects it flagged, sound ones it flagged, how often it could not say, its cost.

    The cost is the mean over the whole matrices, those of the sound ones.
    """
    sound = [answer for answer in answers if answer.entry.is_sound]
    names = list(dict.fromkeys(gate.gate for answer in answers for gate in answer.gates))
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        asked = [a for a in answers if any(gate.gate == name for gate in a.gates)]
        spent = Spent()
        for answer in sound:
            spent.add(answer.spent.get(name, Spent()))
        found[name] = {
            "defects": sum(name in a.failed for a in asked if not a.entry.is_sound),
            "false_alarms": sum(name in a.failed for a in asked if a.entry.is_sound),
            "inconclusive": Rate(sum(name in a.inconclusive for a in asked), len(asked)).as_dict(),
            "sandboxes": spent.sandboxes / len(sound) if sound else None,
            "core_seconds": round(spent.core_seconds / len(sound), 3) if sound else None,
        }
    return found
