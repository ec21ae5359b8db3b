"""The Modifier without a model: applies the planned operator, and moves its notch by evidence."""

from __future__ import annotations

import random
from collections.abc import Sequence

from evolution.contracts import Mutation, Plan, Subject, Verdict
from evolution.operators.base import Operator

SOFTER = frozenset({"format", "build", "oracle", "headroom"})
"""Gates whose failure says that the step asked for too much."""
HARDER = frozenset({"demand", "demands", "parent_solution"})
"""Gates whose failure says that the step asked for too little."""


def modify(
    subject: Subject, plan: Plan, evidence: Verdict | None, operators: Sequence[Operator]
) -> Mutation | str:
    """Build the planned child; after a failure the neighbouring notch that the evidence calls for.

    Gives one line where there is none, so that another operator is planned.
    """
    operator = next((one for one in operators if one.name == plan.operator), None)
    if operator is None:
        return "no operator has that name"
    notch: int | None = plan.notch
    if evidence is not None:
        notch = next_notch(operator.notches, plan.notch, evidence)
    if notch is None:
        return "no notch is left to try"
    try:
        return operator.apply(subject, notch, random.Random(plan.seed))
    except ValueError as error:
        return str(error)


def next_notch(notches: tuple[int, ...], notch: int, evidence: Verdict) -> int | None:
    """The neighbouring notch on the side that the failed gates point to, or None."""
    gates = {result.gate for result in evidence.failed}
    if gates & SOFTER:
        return max((one for one in notches if one < notch), default=None)
    if gates & HARDER:
        return min((one for one in notches if one > notch), default=None)
    return None
