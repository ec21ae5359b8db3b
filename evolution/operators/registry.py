"""The operators there are, and how one is looked up."""

from __future__ import annotations

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
