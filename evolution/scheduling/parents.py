"""Which environments of a lineage become parents.

A choice depends on the lineage's own valid environments and the seed, on nothing else: lineages
worked on side by side, in whatever order, come out the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from evolution.roles.seeding import derived_seed


def choose_parent(digests: Sequence[str], *, seed: int, ordinal: int) -> int:
    """The index of the parent of a generation's child number `ordinal` (from 0).

    The candidates are taken in turn, in an order drawn from the seed, so that children spread over
    all of them. Raises ValueError when there is none.
    """
    if not digests:
        raise ValueError("there is no parent to choose from")
    order = sorted(range(len(digests)), key=lambda at: derived_seed(seed, digests[at]))
    return order[ordinal % len(order)]
