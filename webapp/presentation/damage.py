"""Which check noticed which mutant, read from the evidence of the gate that damages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MORE = re.compile(r" and (\d+) more$")
_COUNTS = re.compile(r"notices (\d+), (\d+) of them alone")
CELL = 12
"""Pixels from one mutant to the next."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damage that was noticed. `more` counts the checks that are not named in `by`.

    `path` is empty where the label says it.
    """

    number: int
    label: str
    path: str
    by: tuple[str, ...]
    more: int
    trial: Any

    @property
    def hidden(self) -> int:
        """The checks that a short list of six leaves out."""
        return self.more + max(0, len(self.by) - 6)


@dataclass(frozen=True, slots=True)
class Check:
    """A check, and where the mutants that it noticed stand in its row, in pixels."""

    name: str
    noticed: int
    alone: int
    cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Damage:
    """Checks × mutants; `rest` is the evidence that is neither (the survivors among it)."""

    checks: tuple[Check, ...]
    mutants: tuple[Mutant, ...]
    rest: tuple[Mapping[str, Any], ...]

    @property
    def silent(self) -> tuple[str, ...]:
        """The checks that noticed none."""
        return tuple(check.name for check in self.checks if not check.noticed)

    @property
    def width(self) -> int:
        """Of the picture, in pixels."""
        return CELL * len(self.mutants)


def damage_of(evidence: Iterable[Mapping[str, Any]]) -> Damage | None:
    """The matrix in some evidence; None where no mutant and no check is in it."""
    mutants: list[Mutant] = []
    said: list[tuple[str, str]] = []
    rest: list[Mapping[str, Any]] = []
    for row in evidence:
        label, result = str(row.get("label", "")), str(row.get("result", ""))
        if label.startswith("noticed: "):
            mutants.append(_mutant(len(mutants) + 1, label, result, row))
        elif label.startswith("check ") and result.startswith("notices "):
            said.append((label.removeprefix("check "), result))
        else:
            rest.append(row)
    if not said and not mutants:
        return None
    checks = tuple(_check(name, text, mutants) for name, text in said)
    return Damage(checks, tuple(mutants), tuple(rest))


def _mutant(number: int, label: str, result: str, row: Mapping[str, Any]) -> Mutant:
    by = result.removeprefix("by ")
    more = _MORE.search(by)
    names = _MORE.sub("", by).split(", ")
    path = next(iter(row.get("files") or ()), "")
    return Mutant(
        number=number,
        label=label.removeprefix("noticed: "),
        path="" if str(path) in label else str(path),
        by=() if by == "the reward alone" else tuple(names),
        more=int(more[1]) if more else 0,
        trial=row.get("trial"),
    )


def _check(name: str, said: str, mutants: Iterable[Mutant]) -> Check:
    counts = _COUNTS.match(said)
    noticed, alone = (int(counts[1]), int(counts[2])) if counts else (0, 0)
    cells = tuple(CELL * (m.number - 1) for m in mutants if name in m.by)
    return Check(name, noticed, alone, cells)
