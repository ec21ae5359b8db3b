"""The procedural author: no model, no key, no network; operators and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evolution.contracts import Mutation, Plan, PlanReview, StepConfig, Subject, Verdict
from evolution.directions import Direction
from evolution.gates.case import Case
from evolution.gates.desk import Steps
from evolution.operators import registry
from evolution.operators.base import Operator
from evolution.roles import modifier, plan_reviewer, proposer


class ProceduralAuthor:
    """Chooses among operators (all registered ones by default). Holds no state: see `Author`."""

    name = "procedural"
    most_plans = 64

    def __init__(self, operators: Sequence[Operator] | None = None) -> None:
        self.operators = tuple(registry.OPERATORS if operators is None else operators)

    def understand(self, subject: Subject) -> Subject:
        """Operators need no more than what is stored."""
        return subject

    def propose(
        self, subject: Subject, direction: Direction, config: StepConfig, findings: tuple[str, ...]
    ) -> Plan | str:
        """See `roles.proposer.propose`."""
        return proposer.propose(subject, direction, config, findings, self.operators)

    def review_plan(self, subject: Subject, plan: Plan) -> PlanReview:
        """See `roles.plan_reviewer.review_plan`."""
        return plan_reviewer.review_plan(subject, plan, self.operators)

    def modify(self, subject: Subject, plan: Plan, evidence: Verdict | None) -> Mutation | str:
        """See `roles.modifier.modify`."""
        return modifier.modify(subject, plan, evidence, self.operators)

    def examine(self, case: Case) -> Mapping[str, Steps]:
        """The gates of the protocol are enough for what operators build."""
        return {}
