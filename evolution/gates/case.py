"""What is put before the gates, and how far their answers reach."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evolution.bundle import Bundle
from evolution.contracts import Mutation, StepConfig, Subject
from evolution.gates.policy import Depth, Policy, Reach, reach
from evolution.gates.versions import PROTOCOL_VERSION

__all__ = ["PROTOCOL_VERSION", "Case", "Depth", "Policy", "candidate", "child_subject"]

FULL_ORACLE_RUNS = 20
"""Runs of the reference solution in the full protocol: flaky at most 14 % when all pass."""
FULL_NOP_RUNS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """One environment before the gates.

    `subject` is the environment itself, its live demands in order of their birth, the newest last.
    `mutation` and `parent` are there for a candidate that a step has just built, and for a
    re-verification whose mutation was kept. `others` are bundles by name that it must not repeat:
    siblings, and what it is kept apart from.
    """

    subject: Subject
    config: StepConfig
    policy: Policy = Policy.MADE
    mutation: Mutation | None = None
    parent: Subject | None = None
    depth: Depth = Depth.QUICK
    others: tuple[tuple[str, Bundle], ...] = ()

    @property
    def bundle(self) -> Bundle:
        """The bundle that is judged."""
        return self.subject.bundle

    def is_blocking(self, gate: str) -> bool:
        """Whether a failure of this gate makes the environment invalid."""
        return reach(gate, self.policy, self.depth) is Reach.BLOCKING

    @property
    def oracle_runs(self) -> int:
        """How often the reference solution is run: as configured, more in the full protocol."""
        wanted = self.config.oracle_runs
        return max(wanted, FULL_ORACLE_RUNS) if self.depth is Depth.FULL else wanted

    @property
    def nop_runs(self) -> int:
        """How often nothing is done: as configured, more in the full protocol."""
        wanted = self.config.nop_runs
        return max(wanted, FULL_NOP_RUNS) if self.depth is Depth.FULL else wanted

    def is_asked(self, gate: str) -> bool:
        """Whether this gate is asked at all."""
        return reach(gate, self.policy, self.depth) is not Reach.NOT_RUN


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
