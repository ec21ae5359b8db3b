"""Which gates are asked, and how far each answer reaches: one table.

Two questions decide: whose environment is it, and how deep shall it be looked at. What Ratchet
makes blocks on every gate that is asked. What is imported blocks on four; the rest are findings,
since otherwise hardly anything foreign would pass. The expensive gates belong to the full protocol:
it is for what is to be frozen, never for a step of a run.
"""

from __future__ import annotations

from enum import StrEnum


class Policy(StrEnum):
    """Whose environment it is."""

    MADE = "made"
    IMPORTED = "imported"


class Depth(StrEnum):
    """How much is asked: what a step can afford, or everything."""

    QUICK = "quick"
    FULL = "full"


class Reach(StrEnum):
    """How far a gate's answer reaches."""

    BLOCKING = "blocking"
    ADVISORY = "advisory"
    NOT_RUN = "not_run"


_B, _A, _N = Reach.BLOCKING, Reach.ADVISORY, Reach.NOT_RUN
COLUMNS = (
    (Policy.IMPORTED, Depth.QUICK),
    (Policy.IMPORTED, Depth.FULL),
    (Policy.MADE, Depth.QUICK),
    (Policy.MADE, Depth.FULL),
)
TABLE: dict[str, tuple[Reach, Reach, Reach, Reach]] = {
    #                   imported: quick, full; made: quick, full
    "format": (_B, _B, _B, _B),
    "novel": (_A, _A, _B, _B),
    "leak": (_A, _A, _B, _B),
    "build": (_B, _B, _B, _B),
    "oracle": (_B, _B, _B, _B),
    "nop": (_B, _B, _B, _B),
    "sequence": (_A, _A, _B, _B),
    "demand": (_A, _A, _B, _B),
    "contract": (_A, _A, _B, _B),
    "headroom": (_A, _A, _B, _B),
    "demands": (_A, _A, _B, _B),
    "parent_solution": (_A, _A, _B, _B),
    "mutants": (_A, _A, _B, _B),
    "image_leak": (_N, _A, _N, _B),
    "hermetic": (_N, _A, _N, _B),
    "alternatives": (_N, _A, _N, _B),
    "exploits": (_N, _A, _N, _B),
}
"""The gates in the order in which they are asked."""


def reach(gate: str, policy: Policy, depth: Depth) -> Reach:
    """How far this gate's answer reaches here. Raises KeyError for a gate that is not known."""
    return TABLE[gate][COLUMNS.index((policy, depth))]


def asked(policy: Policy, depth: Depth) -> tuple[str, ...]:
    """The gates that are asked here, in their order."""
    return tuple(gate for gate in TABLE if reach(gate, policy, depth) is not Reach.NOT_RUN)
