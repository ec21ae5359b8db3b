"""Blocks of attempts, ours and a floor's in turn, so that a machine's drift hits both alike."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from bench.cases import BenchError, Case


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trial, ours or not: how long it took, by phase too, and what was wrong with it."""

    seconds: float
    phases: tuple[tuple[str, float], ...] = ()
    problem: str = ""


Attempting = Callable[[Case, str], Attempt]
"""Runs one trial of a case by an agent."""


@dataclass(frozen=True, slots=True)
class Block:
    """What came of some attempts in a row."""

    attempts: tuple[Attempt, ...]
    wall_seconds: float

    @property
    def seconds_per_trial(self) -> float:
        """Mean seconds from the start of a trial to its result."""
        return statistics.fmean(attempt.seconds for attempt in self.attempts)


@dataclass
class Series:
    """The blocks of one contender in one cell."""

    name: str
    attempting: Attempting
    blocks: list[Block] = field(default_factory=list)

    @property
    def attempts(self) -> list[Attempt]:
        return [attempt for block in self.blocks for attempt in block.attempts]

    @property
    def seconds_per_trial(self) -> float:
        """Mean over all trials."""
        return statistics.fmean(attempt.seconds for attempt in self.attempts)

    @property
    def trials_per_minute(self) -> float:
        """Trials over the time that the blocks took."""
        return 60 * len(self.attempts) / sum(block.wall_seconds for block in self.blocks)

    def phases(self) -> dict[str, float]:
        """Mean seconds per trial by phase."""
        total: dict[str, float] = {}
        for attempt in self.attempts:
            for name, seconds in attempt.phases:
                total[name] = total.get(name, 0.0) + seconds
        return {name: seconds / len(self.attempts) for name, seconds in total.items()}


def run_block(attempting: Attempting, cases: Sequence[Case], agent: str, concurrency: int) -> Block:
    """Attempt all cases, so many at once. Raises BenchError when one came out wrong."""
    started = time.monotonic()
    with ThreadPoolExecutor(concurrency) as pool:
        attempts = tuple(pool.map(lambda case: attempting(case, agent), cases))
    wall = time.monotonic() - started
    for case, attempt in zip(cases, attempts, strict=True):
        if attempt.problem:
            raise BenchError(f"{case.name} by {agent}: {attempt.problem}")
    return Block(attempts, wall)


def measure(
    contenders: Sequence[Series],
    cases: Sequence[Case],
    agent: str,
    concurrency: int,
    *,
    trials: int,
    seconds: float,
    blocks: int = 3,
) -> None:
    """Fill the contenders' series with blocks, in turn and with the order turned each round.

    Each runs at least `trials` trials in at least `blocks` blocks, and goes on until `seconds` are
    over. A block holds the same bundles for all of them. Raises BenchError.
    """
    size = max(concurrency, -(-trials // blocks))
    endless = itertools.cycle(cases)
    for contender in contenders:  # caches, connections, helper processes
        run_block(contender.attempting, cases[:concurrency], agent, concurrency)
    started = time.monotonic()
    for number in itertools.count(1):
        chosen = list(itertools.islice(endless, size))
        for contender in contenders if number % 2 else reversed(contenders):
            block = run_block(contender.attempting, chosen, agent, concurrency)
            contender.blocks.append(block)
        if number >= blocks and time.monotonic() - started >= seconds:
            return


def ratio(ours: Series, floor: Series) -> float:
    """The median over blocks of our seconds per trial over the floor's."""
    return statistics.median(
        one.seconds_per_trial / other.seconds_per_trial
        for one, other in zip(ours.blocks, floor.blocks, strict=True)
    )
