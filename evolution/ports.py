"""What the engine needs from outside: the protocols it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from evolution.bundle import Bundle
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
from sandbox.base import Sandbox, TrialRunner
from sandbox.contracts import TrialResult

if TYPE_CHECKING:
    from evolution.gates.case import Case
    from evolution.gates.desk import Steps

__all__ = ["Author", "GateMemory", "Journal", "TrialLog", "TrialRunner", "Workbench"]


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


class GateMemory(Protocol):
    """The answers that gates gave in earlier verifications."""

    def recall(self, gate: str, cache_key: str) -> GateResult | None:
        """A lasting answer to this very question, with its `source`; None where it is asked anew.

        One that was given earlier in this same verification has no `source`.
        """
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
    most_plans: int
    """How many plans in one direction it may take to a child; then the direction has failed."""

    def understand(self, subject: Subject) -> Subject:
        """The subject as this author sees it: with a better sequence where it had none.

        Gates and operators get what comes back. Most authors change nothing.
        """
        ...

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

    def examine(self, case: Case) -> Mapping[str, Steps]:
        """Further gates by name, asked one after another of a child that passed all others."""
        ...


class Workbench(Protocol):
    """Where an author tries things out: a sandbox of an environment, held open."""

    def open(self, bundle: Bundle) -> Sandbox:
        """A fresh sandbox of the bundle's image within its limits, without network and tests.

        Whoever opens it stops it. Raises SandboxError.
        """
        ...
