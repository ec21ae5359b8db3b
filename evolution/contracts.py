"""What crosses the floor between the engine and those who use it: frozen values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evolution.bundle import Bundle
from evolution.directions import Aspect, Direction, Effect, Effort
from evolution.llm.calls import CallOutcome
from evolution.sequence import Sequence, SequenceEdit
from sandbox.contracts import SandboxFile, TrialResult, tree_digest


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file of a bundle after an edit: new content, or gone when `file` is None."""

    path: str
    file: SandboxFile | None


@dataclass(frozen=True, slots=True)
class Statement:
    """How a demand reads in an instruction. `situation` tells the world, `requirement` the duty."""

    situation: str = ""
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one evolution step added to what the work must do; kept with every descendant.

    `checks` are the names of the checks that carry it, the new ones first; `premise` are those of
    the parent's checks whose premise it changes (they may fail without the adaptation, too).
    `omit` are the edits to the *current* solution that drop the adaptation, and nothing else.
    """

    id: str
    operator: str
    direction: Direction
    aspect: Aspect
    effect: Effect
    notch: int
    title: str
    why: str
    statement: Statement
    checks: tuple[str, ...]
    premise: tuple[str, ...] = ()
    omit: tuple[FileEdit, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Named values that the operator needs again later (a path, a withheld literal, a limit)."""


@dataclass(frozen=True, slots=True)
class OracleFacts:
    """What was observed of an environment's oracle, in fresh sandboxes."""

    result: TrialResult
    median_seconds: float
    peak_memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Subject:
    """An environment as the engine and the operators see it.

    `root_instruction` is the seed's instruction, from which every descendant's is rendered as a
    whole. `oracle` is the traced run of its reference solution, with the state it left.
    `stored_digest` names the bundle as it is kept, where `bundle` is that one rearranged.
    """

    bundle: Bundle
    sequence: Sequence
    demands: tuple[Demand, ...]
    root_instruction: str
    generation: int
    oracle: OracleFacts | None = None
    stored_digest: str = ""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A child with the parts that its proof needs.

    `adaptation`: paths of the child's solution that meet the new demand. `naive`: the whole
    solution folder without that piece (paths below `solution/`). `control`: the child with the
    operator switched off. `wrong`: for effect verifier, a wrong solution that passed the parent's
    tests. `decoy` and `discovery`: for effect observation, a solution that follows the decoy, and
    a shell command that prints every withheld fact (`withheld`) from the container alone.
    """

    child: Bundle
    demand: Demand
    edit: SequenceEdit
    sequence: Sequence
    adaptation: tuple[str, ...]
    naive: tuple[SandboxFile, ...]
    control: Bundle
    wrong: tuple[SandboxFile, ...] = ()
    decoy: tuple[SandboxFile, ...] = ()
    discovery: str = ""
    withheld: tuple[str, ...] = ()
    before: Sequence = ()
    """The parent's sequence that the edit was made on, where it is not the stored one."""
    has_control: bool = True
    """Whether `control` is the child with the operator off: else it is the parent as it is."""

    @property
    def proof(self) -> tuple[object, ...]:
        """What the gates judge: the child, and what is tried on it beside its own solution."""
        beside = (self.naive, self.wrong, self.decoy)
        told = (self.demand.checks, self.discovery, self.withheld)
        return (self.child.digest, *map(tree_digest, beside), *told)


class GateStatus(StrEnum):
    """What a gate answers."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation behind a gate's answer, for a person to read.

    `key` is the trial's key (see `TrialSpec.key`), empty where no trial was run.
    """

    label: str
    result: str
    command: str = ""
    exit_status: int | None = None
    last_lines: str = ""
    files: tuple[str, ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate's answer. `reason` is one plain line. `figures` are named numbers for the page.

    `cache_key` names the question, where its answer may be repeated; see `gates.questions`. An
    answer that was given before names in `source` the verification that gave it, as the memory
    calls it; it took no time.
    """

    gate: str
    version: int
    status: GateStatus
    reason: str
    evidence: tuple[Evidence, ...] = ()
    figures: tuple[tuple[str, float], ...] = ()
    seconds: float = 0.0
    is_blocking: bool = True
    cache_key: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gates together say. Inconclusive is neither valid nor invalid."""

    status: GateStatus
    gates: tuple[GateResult, ...]

    @property
    def is_valid(self) -> bool:
        """Whether the environment may be accepted."""
        return self.status is GateStatus.PASSED

    @property
    def failed(self) -> tuple[GateResult, ...]:
        """The blocking gates that failed."""
        return tuple(g for g in self.gates if g.is_blocking and g.status is GateStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the Proposer wants to do; reviewed before anything is built.

    `details` say in words what each part of the bundle is to become, for who builds it by hand.
    """

    operator: str
    direction: Direction
    aspect: Aspect
    effort: Effort
    notch: int
    sequence: Sequence
    edit: SequenceEdit
    summary: str
    why: str
    seed: int
    revision: int = 0
    effect: Effect = Effect.SOLUTION
    details: str = ""


@dataclass(frozen=True, slots=True)
class PlanReview:
    """The Plan Reviewer's answer: accepted, or findings to revise by."""

    is_accepted: bool
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepConfig:
    """How one step may work. `directions` empty: all three, in a seeded random order.

    `avoid` names operators that siblings of the child to be made have used already.
    """

    seed: int
    effort: Effort = Effort.LOW
    directions: tuple[Direction, ...] = ()
    avoid: tuple[str, ...] = ()
    max_plan_revisions: int = 3
    max_repairs: int = 3
    oracle_runs: int = 3
    nop_runs: int = 3
    mutant_count: int = 20


@dataclass(frozen=True, slots=True)
class Attempt:
    """One built candidate and what came of it."""

    plan: Plan
    mutation: Mutation
    verdict: Verdict
    repair: int = 0


class StepEnd(StrEnum):
    """How a step ended."""

    ACCEPTED = "accepted"
    EXHAUSTED = "exhausted"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step came to. `refusals` are one line per direction or plan that led nowhere."""

    end: StepEnd
    attempts: tuple[Attempt, ...] = ()
    refusals: tuple[str, ...] = ()
    oracle: OracleFacts | None = None
    unavailable: CallOutcome | None = None
    """How the last call to a model ended, where the step waits for one that can be reached."""

    @property
    def accepted(self) -> Attempt | None:
        """The attempt whose child was accepted, if any."""
        last = self.attempts[-1] if self.attempts else None
        return last if last and self.end is StepEnd.ACCEPTED else None
