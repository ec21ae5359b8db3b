"""The Plan Reviewer: rules first, which cost nothing, then the model's judgement."""

from __future__ import annotations

from evolution.agents import briefing
from evolution.agents.answers import Review
from evolution.agents.asking import GaveUp, Question, ask
from evolution.agents.means import Means
from evolution.contracts import Plan, PlanReview, Subject
from evolution.language import language_complaint
from evolution.llm.calls import Role
from evolution.plain_text import plain
from evolution.prompts import prompt
from evolution.roles.findings import finding
from evolution.roles.plan_reviewer import direction_complaint, effort_complaint

PROMPT = prompt("plan_reviewer", "house")


def review_plan(means: Means, subject: Subject, plan: Plan) -> PlanReview:
    """Judge a plan before it is built."""
    said = direction_complaint(plan) or effort_complaint(subject.sequence, plan)
    if said or not plan.why.strip():
        why = said or "does not say why it is harder"
        return PlanReview(False, (finding(plan.operator, why),))
    answer = ask(
        means.models,
        Question(
            role=Role.PLAN_REVIEWER,
            place=f"{plan.seed}/{plan.direction.value}/review/{plan.revision}",
            prompt=PROMPT,
            text="\n\n".join(
                (
                    briefing.plan_text(plan, subject, means.bounds),
                    briefing.environment(subject, means.bounds),
                )
            ),
            answer=Review,
            turns=means.turns.review,
            check=_check,
        ),
        means.bounds,
    )
    if isinstance(answer, GaveUp):
        return PlanReview(False, (finding("plan reviewer", answer.reason),))
    if answer.accepted:
        return PlanReview(True)
    return PlanReview(False, tuple(finding(plan.operator, plain(f)) for f in answer.findings))


def _check(answer: Review) -> str | None:
    if not answer.accepted and not any(line.strip() for line in answer.findings):
        return "a plan that is not accepted is returned with findings"
    return language_complaint(answer.findings)
