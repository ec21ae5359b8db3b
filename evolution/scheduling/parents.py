"""Which environments of a lineage become parents.

A choice depends on the lineage's own valid environments and the seed, on nothing else: lineages
worked on side by side, in whatever order, come out the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolution.roles.seeding import derived_random, derived_seed

MOST_CHILDREN = 4
"""Children of one parent in a run, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class Node:
    """A valid environment of a lineage."""

    digest: str
    generation: int


def choose_parent(digests: Sequence[str], *, seed: int, ordinal: int) -> int:
    """The index of the parent of a generation's child number `ordinal` (from 0).

    The candidates are taken in turn, in an order drawn from the seed, so that children spread over
    all of them. Raises ValueError when there is none.
    """
    if not digests:
        raise ValueError("there is no parent to choose from")
    order = sorted(range(len(digests)), key=lambda at: derived_seed(seed, digests[at]))
    return order[ordinal % len(order)]


def choose_parents(
    nodes: Sequence[Node],
    generation: int,
    children: int,
    seed: int,
    most_children: int = MOST_CHILDREN,
) -> tuple[str, ...]:
    """The parents' digests for up to `children` children of a generation, one entry per child.

    Parents are the valid nodes of the generation before, or of the latest one that has any. None
    gets more than `most_children`.
    """
    earlier = [node for node in nodes if node.generation < generation]
    if not earlier:
        return ()
    latest = max(node.generation for node in earlier)
    digests = sorted({node.digest for node in earlier if node.generation == latest})
    derived_random(seed, generation, *digests).shuffle(digests)
    count = min(children, len(digests) * most_children)
    return tuple(digests[at % len(digests)] for at in range(count))
