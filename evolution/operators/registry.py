"""The operators there are, and the ways to look them up."""

from __future__ import annotations

from evolution.directions import Aspect, Direction
from evolution.families.operators import OPERATORS as OF_FAMILIES
from evolution.operators.base import Operator
from evolution.operators.length_constraints import EvidenceManifest
from evolution.operators.length_dynamics import SealedFollowup
from evolution.operators.scenario_constraints import ForeignEncoding
from evolution.operators.scenario_dynamics import StaleCopies
from evolution.operators.scenario_resources import DamagedMirrors
from evolution.operators.skill_constraints import CollateralGuard
from evolution.operators.skill_dynamics import FlakySource
from evolution.operators.skill_resources import SizeBudget

OPERATORS: tuple[Operator, ...] = (
    ForeignEncoding(),
    DamagedMirrors(),
    StaleCopies(),
    CollateralGuard(),
    SizeBudget(),
    FlakySource(),
    EvidenceManifest(),
    SealedFollowup(),
    *OF_FAMILIES,
)
"""All operators, wrappers first, in a fixed order."""


def operator(name: str) -> Operator:
    """The operator of this name. Raises KeyError when there is none."""
    return {one.name: one for one in OPERATORS}[name]


def in_cell(direction: Direction, aspect: Aspect) -> tuple[Operator, ...]:
    """The operators of one cell of the grid."""
    return tuple(o for o in OPERATORS if o.direction is direction and o.aspect is aspect)


def in_direction(direction: Direction) -> tuple[Operator, ...]:
    """The operators that raise one term of the learning objective."""
    return tuple(o for o in OPERATORS if o.direction is direction)
