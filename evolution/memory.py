"""Journals and trial logs that live in memory: for tests, replays, and work done in one process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evolution.contracts import Attempt, GateResult, GateStatus, Mutation, Plan, Verdict
from evolution.gates.desk import MACHINERY
from sandbox.contracts import TrialResult


@dataclass(slots=True)
class MemoryLog:
    """A trial log that lives as long as this object."""

    results: dict[tuple[str, str, int], TrialResult] = field(default_factory=dict)
    faults: list[tuple[str, int, TrialResult]] = field(default_factory=list)
    gates: list[GateResult] = field(default_factory=list)
    count: int = 0

    def recall(self, key: str, solver: str, repetition: int) -> TrialResult | None:
        """See `TrialLog.recall`."""
        return self.results.get((key, solver, repetition))

    def record(
        self, key: str, solver: str, repetition: int, gate: str, result: TrialResult
    ) -> None:
        """See `TrialLog.record`."""
        self.count += 1
        if result.outcome in MACHINERY:
            self.faults.append((solver, repetition, result))
        else:
            self.results[key, solver, repetition] = result

    def gate(self, result: GateResult) -> None:
        """See `TrialLog.gate`."""
        self.gates.append(result)


@dataclass(slots=True)
class MemoryGates:
    """What gates answered, as long as this object lives; see `GateMemory`."""

    known: dict[tuple[str, str], GateResult] = field(default_factory=dict)

    def recall(self, gate: str, cache_key: str) -> GateResult | None:
        """See `GateMemory.recall`."""
        return self.known.get((gate, cache_key))

    def keep(self, verdict: Verdict, source: str) -> None:
        """Remember the lasting answers of a verification by that name."""
        for answer in verdict.gates:
            if answer.cache_key and answer.status is not GateStatus.INCONCLUSIVE:
                kept = replace(answer, source=answer.source or source)
                self.known.setdefault((answer.gate, answer.cache_key), kept)


@dataclass(slots=True)
class MemoryJournal:
    """A journal that lives as long as this object; logs by child digest survive a second step."""

    parent: MemoryLog = field(default_factory=MemoryLog)
    logs: dict[str, MemoryLog] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)

    def event(self, kind: str, text: str, **facts: str | int | float) -> None:
        """See `Journal.event`."""
        self.events.append((kind, text))

    def open_candidate(self, plan: Plan, mutation: Mutation, repair: int) -> MemoryLog:
        """See `Journal.open_candidate`."""
        return self.logs.setdefault(mutation.child.digest, MemoryLog())

    def close_candidate(self, attempt: Attempt) -> None:
        """See `Journal.close_candidate`."""
        self.attempts.append(attempt)

    def parent_log(self) -> MemoryLog:
        """See `Journal.parent_log`."""
        return self.parent
