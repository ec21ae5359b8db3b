"""What the engine needs from outside: the protocols it is given."""

from __future__ import annotations

from typing import Protocol

from evolution.contracts import (
    Attempt,
    GateResult,
    Mutation,
    Plan,
    PlanReview,
    StepConfig,
    Subject,
    Verdict,
)
from evolution.directions import Direction
from sandbox.base import TrialRunner
from sandbox.contracts import TrialResult

__all__ = ["Author", "Journal", "TrialLog", "TrialRunner"]


class TrialLog(Protocol):
    """The memory of one verification's trials: a finished trial is never run twice.

    `solver` and `repetition` name the trial inside the verification ("oracle", 2). Machinery
    faults are recorded for people, but never recalled.
    """

    def recall(self, key: str, solver: str, repetition: int) -> TrialResult | None:
        """The result recorded for this trial, or None."""
        ...

    def record(
        self, key: str, solver: str, repetition: int, gate: str, result: TrialResult
    ) -> None:
        """Keep a result for good."""
        ...

    def gate(self, result: GateResult) -> None:
        """A gate has answered."""
        ...


class Journal(Protocol):
    """What the engine tells while it works; may be read by people as it happens."""

    def event(self, kind: str, text: str, **facts: str | int | float) -> None:
        """Something worth a line happened."""
        ...

    def open_candidate(self, plan: Plan, mutation: Mutation, repair: int) -> TrialLog:
        """A child was built and is about to be verified. The same child twice is one candidate."""
        ...

    def close_candidate(self, attempt: Attempt) -> None:
        """The gates have spoken."""
        ...

    def parent_log(self) -> TrialLog:
        """The memory for trials of the parent itself (its traced oracle run)."""
        ...


class Author(Protocol):
    """Who plays the roles: Proposer, Plan Reviewer, Modifier."""

    name: str

    def propose(
        self, subject: Subject, direction: Direction, config: StepConfig, findings: tuple[str, ...]
    ) -> Plan | str:
        """A plan in this direction, or one line that says why there is none."""
        ...

    def review_plan(self, subject: Subject, plan: Plan) -> PlanReview:
        """Judge a plan before it is built."""
        ...

    def modify(self, subject: Subject, plan: Plan, evidence: Verdict | None) -> Mutation | str:
        """Build the child (again, from evidence), or say in one line why it cannot be built."""
        ...
