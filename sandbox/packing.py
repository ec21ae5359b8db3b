"""Who may start next on this machine: the rules, without files and clocks.

A place takes CPUs and memory as declared; all places together never take more than the machine
has. Those who wait are served in turn, party by party, and in order within a party: each gets a
turn number one above the last one served, or above its party's last one that waits, and the
smallest number goes first. Whoever is first and does not fit keeps its turn: nobody overtakes, so
that a large request is never starved by small ones, and no capacity is idle while the first fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

MILLI = 1000


@dataclass(frozen=True, slots=True)
class Capacity:
    """What may be given away: CPUs (may be a fraction), bytes, and the CPUs' numbers."""

    cpus: float
    memory_bytes: int
    cpu_numbers: tuple[int, ...] = ()

    @property
    def millicpus(self) -> int:
        """Thousandths of a CPU, so that sums are exact."""
        return to_millicpus(self.cpus)


@dataclass(frozen=True)
class Entry:
    """One request, waiting or held. `since` is in seconds since the epoch, `pid` its process."""

    number: int
    party: str
    turn: int
    millicpus: int
    memory_bytes: int
    is_pinned: bool = False
    cpu_set: tuple[int, ...] = ()
    pid: int = 0
    since: float = 0.0

    @property
    def cpus(self) -> float:
        """The CPUs that it takes."""
        return self.millicpus / MILLI


@dataclass
class Queue:
    """Everything that is held and waited for. `turn` is that of the last one served."""

    last_number: int = 0
    turn: int = 0
    held: list[Entry] = field(default_factory=list)
    waiting: list[Entry] = field(default_factory=list)

    def join(self, entry: Entry) -> Entry:
        """Let a request wait for its turn; returns it with its number and turn."""
        self.last_number += 1
        before = [other.turn for other in self.waiting if other.party == entry.party]
        turn = max([self.turn, *before]) + 1
        entry = replace(entry, number=self.last_number, turn=turn)
        self.waiting.append(entry)
        return entry

    def first(self) -> Entry | None:
        """Whose turn it is."""
        return min(self.waiting, key=lambda entry: (entry.turn, entry.number), default=None)

    def position(self, number: int) -> int:
        """How many are served before this one."""
        mine = self.find(number)
        return sum((e.turn, e.number) < (mine.turn, mine.number) for e in self.waiting)

    def find(self, number: int) -> Entry:
        """The request of that number. Raises KeyError."""
        for entry in (*self.waiting, *self.held):
            if entry.number == number:
                return entry
        raise KeyError(number)

    def fits(self, entry: Entry, capacity: Capacity) -> bool:
        """Whether it can be held beside what is held now."""
        millicpus = sum(other.millicpus for other in self.held) + entry.millicpus
        memory = sum(other.memory_bytes for other in self.held) + entry.memory_bytes
        return millicpus <= capacity.millicpus and memory <= capacity.memory_bytes

    def admit(self, number: int, capacity: Capacity, now: float) -> Entry:
        """Turn one that waits into one that holds, on CPUs of its own as far as there are any."""
        entry = self.find(number)
        cpu_set = choose_cpus(entry, self.held, capacity) if entry.is_pinned else ()
        self.waiting.remove(entry)
        self.turn = max(self.turn, entry.turn)
        entry = replace(entry, cpu_set=cpu_set, since=now)
        self.held.append(entry)
        return entry

    def drop(self, number: int) -> None:
        """Forget a request, whatever its state; an unknown one is no error."""
        self.held = [entry for entry in self.held if entry.number != number]
        self.waiting = [entry for entry in self.waiting if entry.number != number]


def to_millicpus(cpus: float) -> int:
    """Thousandths of a CPU, one at least."""
    return max(1, round(cpus * MILLI))


def choose_cpus(entry: Entry, held: Sequence[Entry], capacity: Capacity) -> tuple[int, ...]:
    """The CPUs to run on: the fullest that still have room for their share, else the emptiest.

    So parts of CPUs share one, and whole ones stay free for those that need them. Empty when all
    CPUs are needed.
    """
    count = math.ceil(entry.millicpus / MILLI)
    numbers = capacity.cpu_numbers
    if count >= len(numbers):
        return ()
    load = dict.fromkeys(numbers, 0.0)
    for other in held:
        for number in other.cpu_set:
            if number in load:
                load[number] += other.millicpus / len(other.cpu_set)
    room = capacity.millicpus / len(numbers)
    share = entry.millicpus / count

    def order(number: int) -> tuple[bool, float, int]:
        is_full = load[number] + share > room
        return is_full, load[number] if is_full else -load[number], number

    return tuple(sorted(sorted(numbers, key=order)[:count]))
