"""The Plan Reviewer without a model: rules that a plan either keeps or breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from evolution.contracts import Plan, PlanReview, Subject
from evolution.directions import Effort
from evolution.operators.base import Operator
from evolution.roles.findings import finding
from evolution.sequence import KIND_OF_DIRECTION, apply_edit
from evolution.sequence import Sequence as Pairs

Rule = Callable[[Subject, Plan, Operator], str | None]
LONGEST_SEQUENCE = 24
"""More pairs than this nobody reads, and no solver's patience covers."""


def review_plan(subject: Subject, plan: Plan, operators: Sequence[Operator]) -> PlanReview:
    """Judge a plan by every rule; all findings at once."""
    operator = next((one for one in operators if one.name == plan.operator), None)
    if operator is None:
        return PlanReview(False, (finding(plan.operator, "no operator has that name"),))
    said = [reason for rule in RULES if (reason := rule(subject, plan, operator))]
    return PlanReview(not said, tuple(finding(plan.operator, reason) for reason in said))


def _cell(_: Subject, plan: Plan, operator: Operator) -> str | None:
    if (plan.direction, plan.aspect) != (operator.direction, operator.aspect):
        return f"belongs to {operator.direction} x {operator.aspect}, not to the planned cell"
    return None


def _one_direction(_: Subject, plan: Plan, __: Operator) -> str | None:
    return direction_complaint(plan)


def _edit_fits(subject: Subject, plan: Plan, _: Operator) -> str | None:
    try:
        after = apply_edit(subject.sequence, plan.edit)
    except ValueError as error:
        return f"the edit does not fit the sequence: {error}"
    return None if after == plan.sequence else "the planned sequence is not what the edit gives"


def _effort(subject: Subject, plan: Plan, _: Operator) -> str | None:
    return effort_complaint(subject.sequence, plan)


def _not_live(subject: Subject, plan: Plan, _: Operator) -> str | None:
    if any(demand.operator == plan.operator for demand in subject.demands):
        return "is a demand of this lineage already"
    return None


def _notch(_: Subject, plan: Plan, operator: Operator) -> str | None:
    known = ", ".join(str(notch) for notch in operator.notches)
    return None if plan.notch in operator.notches else f"has no notch {plan.notch} ({known})"


def _says_why(_: Subject, plan: Plan, __: Operator) -> str | None:
    return None if plan.why.strip() else "does not say why it is harder"


def _pairs_named(_: Subject, plan: Plan, __: Operator) -> str | None:
    pair = plan.edit.pair
    return None if pair.scenario.strip() and pair.skill.strip() else "leaves a pair unnamed"


def _length(_: Subject, plan: Plan, __: Operator) -> str | None:
    if len(plan.sequence) > LONGEST_SEQUENCE:
        return f"makes a sequence of {len(plan.sequence)} pairs, more than {LONGEST_SEQUENCE}"
    return None


def direction_complaint(plan: Plan) -> str | None:
    """Which edit is not in the plan's direction, in one line; None when all are."""
    for part in plan.edit.parts:
        if part.kind is not KIND_OF_DIRECTION[plan.direction]:
            return f"an edit of kind {part.kind} is not in the direction {plan.direction}"
    return None


RULES: tuple[Rule, ...] = (
    _cell,
    _one_direction,
    _edit_fits,
    _effort,
    _not_live,
    _notch,
    _says_why,
    _pairs_named,
    _length,
)


def effort_complaint(before: Pairs, plan: Plan) -> str | None:
    """Why an edit is larger than its effort allows, in one line; None when it is not.

    Low: one pair. High: pairs that stand side by side. Max: any.
    """
    size, edits = edit_size(before, plan.sequence), len(plan.edit.parts)
    if plan.effort is Effort.LOW and max(size, edits) > 1:
        return "changes more than one pair, which effort low does not allow"
    if plan.effort is Effort.HIGH and size > edits:
        return "changes pairs that do not stand side by side, which effort high does not allow"
    return None


def edit_size(before: Pairs, after: Pairs) -> int:
    """How many pairs differ, once the common beginning and the common end are left out."""
    head = 0
    for one, two in zip_longest(before, after):
        if one != two:
            break
        head += 1
    tail = 0
    most = min(len(before), len(after)) - head
    while tail < most and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return max(len(before), len(after)) - head - tail
