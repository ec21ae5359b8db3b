"""What an operator is: a named way to harden an environment, in one cell of the grid.

Conventions that the gates and the engine rely on:

- An operator is used once in a lineage; its demand's `id` is the operator's name, and its checks
  are called `<id>.<check>`.
- A demand of effect `budget` names its limit in its facts: `budget_kind` ("bytes", "memory_bytes"),
  `budget_limit` (a whole number) and, for bytes, `budget_path` (the artifact that is weighed).
- A demand that hides an input names it in its facts: `input` (absolute path, to be restored there)
  and `source` (where the solver finds what it is restored from).
- `artifact` in the facts (it may occur several times) is a path that the demand made judged.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import ClassVar

from evolution.contracts import Demand, Mutation, Subject
from evolution.directions import Aspect, Direction, Effect


class Kind(StrEnum):
    """Wrappers work on any bundle with a reference solution; family operators mutate a gene."""

    WRAPPER = "wrapper"
    FAMILY = "family"


class Operator(ABC):
    """One way to make an environment harder, with the parts that prove it."""

    name: ClassVar[str]
    title: ClassVar[str]
    """A few words for people."""
    direction: ClassVar[Direction]
    aspect: ClassVar[Aspect]
    effect: ClassVar[Effect]
    version: ClassVar[int] = 1
    """Raised whenever the same input would give another child."""
    kind: ClassVar[Kind] = Kind.WRAPPER
    notches: ClassVar[tuple[int, ...]] = (1, 2, 3)
    """The strengths it knows, ascending."""

    @abstractmethod
    def applies_to(self, subject: Subject) -> str | None:
        """Why it cannot be applied, in one line that names the reason; None when it can."""

    @abstractmethod
    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """The child with its parts; the same arguments give the same child on every machine.

        A notch that this subject has no room for is lowered, and the demand says which it became.
        Raises ValueError when `applies_to` refuses the subject.
        """


def facts(demand: Demand, name: str) -> tuple[str, ...]:
    """All values that a demand records under this name."""
    return tuple(value for key, value in demand.facts if key == name)


def live(subject: Subject, name: str) -> Demand | None:
    """The demand that an operator of this name has already put into the lineage."""
    return next((demand for demand in subject.demands if demand.operator == name), None)
