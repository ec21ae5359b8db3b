"""The author that asks language models. Load it only when one is really used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from evolution.agents import cold_start, examining, modifier, plan_reviewer, proposer
from evolution.agents.means import Means
from evolution.contracts import Mutation, Plan, PlanReview, StepConfig, Subject, Verdict
from evolution.directions import Direction
from evolution.gates.case import Case
from evolution.gates.desk import Steps

MOST_DRAFTS = 32
"""How many steps' last drafts are kept for their repair."""


class LlmAuthor:
    """Plays every role by a model; implements `Author`.

    The same answers of models and sandboxes give the same children. `BudgetStop`,
    `StepBudgetStop`, `ModelUnavailable` and `SandboxError` pass through. May be used by many
    threads, if what `means` holds may.
    """

    name = "llm"
    most_plans = 3

    def __init__(self, means: Means) -> None:
        self.means = means
        self._drafts: OrderedDict[tuple[str, int, str], Mutation] = OrderedDict()
        self._lock = threading.Lock()

    def understand(self, subject: Subject) -> Subject:
        """With a sequence of its own where the environment states none."""
        return cold_start.understand(self.means, subject)

    def propose(
        self, subject: Subject, direction: Direction, config: StepConfig, findings: tuple[str, ...]
    ) -> Plan | str:
        """See `agents.proposer.propose`."""
        return proposer.propose(self.means, subject, direction, config, findings)

    def review_plan(self, subject: Subject, plan: Plan) -> PlanReview:
        """See `agents.plan_reviewer.review_plan`."""
        return plan_reviewer.review_plan(self.means, subject, plan)

    def modify(self, subject: Subject, plan: Plan, evidence: Verdict | None) -> Mutation | str:
        """See `agents.modifier.modify`; a repair begins with the draft that failed."""
        slot = (subject.bundle.digest, plan.seed, plan.operator)
        with self._lock:
            earlier = self._drafts.get(slot)
        made = modifier.modify(self.means, subject, plan, evidence, earlier)
        if not isinstance(made, str):
            with self._lock:
                self._drafts[slot] = made
                self._drafts.move_to_end(slot)
                while len(self._drafts) > MOST_DRAFTS:
                    self._drafts.popitem(last=False)
        return made

    def examine(self, case: Case) -> Mapping[str, Steps]:
        """The rubrics, then the Exploiter."""
        return examining.gates_of(self.means, case)
