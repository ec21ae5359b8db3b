"""Which environments a trainer rolls out next: equation 2 of the paper, as a pure function.

Every lineage has one active environment E(i, g, k): instance k of generation g. After B rollouts
of it, the lineage advances to the next instance, then to the next generation, when the pass rate
is strictly above tau. Rotation over lineages and parking of stuck ones are ours, and off unless
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

GROUP = 8
"""B: rollouts before a lineage is judged."""
THRESHOLD = 6 / 8
"""tau: the pass rate that has to be exceeded."""
PASS_REWARD = 1.0


@dataclass(frozen=True, slots=True)
class Rules:
    """How lineages advance. `park_after`: groups without an advance until a lineage is left out."""

    group: int = GROUP
    threshold: float = THRESHOLD
    is_rotating: bool = False
    park_after: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where one lineage stands. `generations` holds its environments' ids by generation."""

    lineage: str
    generations: tuple[tuple[str, ...], ...]
    generation: int = 0
    instance: int = 0
    passes: int = 0
    attempts: int = 0
    stuck_groups: int = 0
    is_finished: bool = False

    @property
    def active(self) -> str:
        """The environment that is rolled out now."""
        return self.generations[self.generation][self.instance]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All lineages; `turn` counts the groups that were reported."""

    positions: tuple[Position, ...]
    rules: Rules = Rules()
    turn: int = 0


def start(
    lineages: Sequence[tuple[str, Sequence[Sequence[str]]]], rules: Rules | None = None
) -> Schedule:
    """A schedule at the beginning. Generations without an environment are left out.

    Raises ValueError for a lineage without any environment.
    """
    positions = []
    for name, generations in lineages:
        kept = tuple(tuple(generation) for generation in generations if generation)
        if not kept:
            raise ValueError(f"lineage {name!r} has no environment")
        positions.append(Position(name, kept))
    return Schedule(tuple(positions), rules or Rules())


def open_positions(schedule: Schedule) -> tuple[Position, ...]:
    """The lineages that still have something to teach, parked ones left out."""
    park = schedule.rules.park_after
    return tuple(
        position
        for position in schedule.positions
        if not position.is_finished and (park is None or position.stuck_groups < park)
    )


def next_environment(schedule: Schedule) -> str | None:
    """The environment to roll out next, or None when no lineage is open."""
    candidates = open_positions(schedule)
    if not candidates:
        return None
    at = schedule.turn % len(candidates) if schedule.rules.is_rotating else 0
    return candidates[at].active


def report(schedule: Schedule, environment: str, rewards: Sequence[float]) -> Schedule:
    """The schedule after some rollouts of an active environment; groups may come in pieces.

    Raises ValueError when no lineage has that environment active.
    """
    for at, position in enumerate(schedule.positions):
        if position.active == environment and not position.is_finished:
            after = _counted(position, rewards, schedule.rules)
            is_judged = after.attempts == 0
            positions = (*schedule.positions[:at], after, *schedule.positions[at + 1 :])
            return replace(schedule, positions=positions, turn=schedule.turn + is_judged)
    raise ValueError(f"no lineage has environment {environment!r} active")


def _counted(position: Position, rewards: Sequence[float], rules: Rules) -> Position:
    """Count rewards up to a whole group, then judge; what goes beyond the group is dropped."""
    for reward in rewards:
        position = replace(
            position,
            passes=position.passes + (reward >= PASS_REWARD),
            attempts=position.attempts + 1,
        )
        if position.attempts == rules.group:
            return _judged(position, rules)
    return position


def _judged(position: Position, rules: Rules) -> Position:
    is_mastered = position.passes / position.attempts > rules.threshold
    position = replace(position, passes=0, attempts=0)
    if not is_mastered:
        return replace(position, stuck_groups=position.stuck_groups + 1)
    position = replace(position, stuck_groups=0)
    if position.instance + 1 < len(position.generations[position.generation]):
        return replace(position, instance=position.instance + 1)
    if position.generation + 1 < len(position.generations):
        return replace(position, generation=position.generation + 1, instance=0)
    return replace(position, is_finished=True)
