"""What is put before the gates, and how far their answers reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from evolution.bundle import Bundle
from evolution.contracts import Mutation, StepConfig, Subject

PROTOCOL_VERSION = 1
"""Raised whenever a gate's meaning changes; earlier verdicts are stale then."""


class Policy(StrEnum):
    """Whose environment it is: what Ratchet makes blocks on all gates, what is imported on four."""

    MADE = "made"
    IMPORTED = "imported"


BLOCKING_FOR_IMPORTED = frozenset({"format", "build", "oracle", "nop"})


@dataclass(frozen=True, slots=True)
class Case:
    """One environment before the gates.

    `subject` is the environment itself, its live demands in order of their birth, the newest last.
    `mutation` and `parent` are there for a candidate that a step has just built, and for a
    re-verification whose mutation was kept.
    """

    subject: Subject
    config: StepConfig
    policy: Policy = Policy.MADE
    mutation: Mutation | None = None
    parent: Subject | None = None

    @property
    def bundle(self) -> Bundle:
        """The bundle that is judged."""
        return self.subject.bundle

    def is_blocking(self, gate: str) -> bool:
        """Whether a failure of this gate makes the environment invalid."""
        return self.policy is Policy.MADE or gate in BLOCKING_FOR_IMPORTED


def child_subject(parent: Subject, mutation: Mutation) -> Subject:
    """The child of a mutation as a subject of its own, one generation on."""
    return replace(
        parent,
        bundle=mutation.child,
        sequence=mutation.sequence,
        demands=(*parent.demands, mutation.demand),
        generation=parent.generation + 1,
        oracle=None,
    )


def candidate(parent: Subject, mutation: Mutation, config: StepConfig) -> Case:
    """The case of a child that was just built."""
    return Case(
        subject=child_subject(parent, mutation), config=config, mutation=mutation, parent=parent
    )
