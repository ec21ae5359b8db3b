"""One evolution step: from a parent to an accepted child, or to nothing.

Loop 1 plans: propose, review, revise. Loop 2 builds: modify, verify, repair from the evidence.
When a direction fails the next one is tried from the same parent. A step is a pure function of
its inputs (parent, author, trial results, configuration): the same ones give the same child.
"""

from __future__ import annotations

import statistics
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from evolution.bundle import Bundle
from evolution.carrying import GATE as CARRYING
from evolution.carrying import Search, separated, wants_carrying
from evolution.contracts import (
    Attempt,
    GateResult,
    GateStatus,
    OracleFacts,
    Plan,
    StepConfig,
    StepEnd,
    StepResult,
    Subject,
    Verdict,
)
from evolution.directions import Direction
from evolution.gates import oracle
from evolution.gates.case import Case, candidate
from evolution.gates.desk import Desk
from evolution.gates.protocol import WORKERS, verdict_of, verify
from evolution.gates.specs import oracle_asks
from evolution.llm.calls import ModelUnavailable, StepBudgetStop
from evolution.ports import Author, Journal, TrialLog, TrialRunner
from evolution.roles.findings import finding
from evolution.roles.seeding import derived_random
from sandbox.errors import SandboxError


def evolve_step(
    subject: Subject,
    author: Author,
    runner: TrialRunner,
    journal: Journal,
    config: StepConfig,
    *,
    pool: Executor | None = None,
    workers: int = WORKERS,
    others: tuple[tuple[str, Bundle], ...] = (),
) -> StepResult:
    """Make one child of `subject` that passes all gates, within the configured budgets.

    The end is `inconclusive` as soon as broken machinery stands between a candidate and its
    verdict, or a model cannot be reached: repeating the step with the same logs goes on from there.
    A step whose own budget is used up is exhausted; BudgetStop of the run passes through.
    `others` are bundles by name that no child may repeat; the same ones give the same child.
    """
    if pool is None:
        with ThreadPoolExecutor(workers, thread_name_prefix="trial") as own:
            return _Step(author, runner, journal, config, own, others).run(subject)
    return _Step(author, runner, journal, config, pool, others).run(subject)


def direction_order(subject: Subject, config: StepConfig) -> tuple[Direction, ...]:
    """The directions to try: as configured, or all three in an order drawn from the seed."""
    if config.directions:
        return config.directions
    order = list(Direction)
    derived_random(subject.bundle.digest, config.seed, "directions").shuffle(order)
    return tuple(order)


def observe_oracle(
    subject: Subject, runner: TrialRunner, log: TrialLog, config: StepConfig, pool: Executor
) -> tuple[OracleFacts | None, GateResult]:
    """The oracle's traced run with its medians, and the gate's answer; no facts unless it passed.

    What the log remembers is not run again.
    """
    desk = Desk(runner, log, pool)
    case = Case(subject, config)
    answer = desk.settle({oracle.GATE: oracle.check(case)})[oracle.GATE]
    if answer.status is not GateStatus.PASSED:
        return None, answer
    results = [desk.known[ask.slot] for ask in oracle_asks(case)]
    memory = [r.usage.peak_memory_bytes for r in results if r.usage.peak_memory_bytes is not None]
    facts = OracleFacts(
        result=results[0],
        median_seconds=statistics.median(dict(r.phases).get("solver", 0.0) for r in results),
        peak_memory_bytes=int(statistics.median(memory)) if memory else None,
    )
    return facts, answer


@dataclass(slots=True)
class _Step:
    """One step at work: what was built so far, and why things led nowhere."""

    author: Author
    runner: TrialRunner
    journal: Journal
    config: StepConfig
    pool: Executor
    others: tuple[tuple[str, Bundle], ...] = ()
    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    builds: int = 0

    def run(self, subject: Subject) -> StepResult:
        """Work, and tell from the work's own failures what only stood in its way."""
        try:
            return self._run(subject)
        except ModelUnavailable as error:
            self._refuse(f"model: {error}")
            return replace(self._ended(StepEnd.INCONCLUSIVE, subject), unavailable=error.outcome)
        except SandboxError as error:  # where an author works; trials never raise it
            self._refuse(f"sandbox: {error}")
            return self._ended(StepEnd.INCONCLUSIVE, subject)
        except StepBudgetStop as stop:
            self._refuse(f"budget: {stop}")
            return self._ended(StepEnd.EXHAUSTED, subject)

    def _run(self, subject: Subject) -> StepResult:
        """Observe the parent, then try the directions in turn."""
        if subject.oracle is None:
            facts, answer = observe_oracle(
                subject, self.runner, self.journal.parent_log(), self.config, self.pool
            )
            if facts is None:
                return self._without_oracle(answer)
            subject = replace(subject, oracle=facts)
        subject = self.author.understand(self._carried(subject))
        for direction in direction_order(subject, self.config):
            end = self._try(subject, direction)
            if end is not None:
                return self._ended(end, subject)
            self.journal.event("fallback", self.refusals[-1], direction=direction.value)
        return self._ended(StepEnd.EXHAUSTED, subject)

    def _carried(self, subject: Subject) -> Subject:
        """The parent with its work judged in a clean sandbox, where that can be done."""
        if not wants_carrying(subject.bundle):
            return subject
        log = self.journal.parent_log()
        search = Search(Case(subject, self.config))
        answer = Desk(self.runner, log, self.pool).settle({CARRYING: search.steps()})[CARRYING]
        self.journal.event(CARRYING, answer.reason)
        if not search.artifacts:
            return subject
        apart = separated(subject.bundle, search.artifacts)
        found = replace(subject, bundle=apart, stored_digest=subject.bundle.digest)
        facts, _ = observe_oracle(found, self.runner, log, self.config, self.pool)
        return replace(found, oracle=facts) if facts else subject

    def _without_oracle(self, answer: GateResult) -> StepResult:
        self._refuse(f"parent: {answer.reason}")
        is_broken = answer.status is GateStatus.FAILED
        return StepResult(
            StepEnd.EXHAUSTED if is_broken else StepEnd.INCONCLUSIVE, refusals=tuple(self.refusals)
        )

    def _ended(self, end: StepEnd, subject: Subject) -> StepResult:
        self.journal.event("step", end.value, attempts=len(self.attempts))
        return StepResult(end, tuple(self.attempts), tuple(self.refusals), subject.oracle)

    def _refuse(self, line: str) -> None:
        self.refusals.append(line)
        self.journal.event("refused", line)

    def _try(self, subject: Subject, direction: Direction) -> StepEnd | None:
        """Both loops in one direction; None when it led to nothing."""
        findings: tuple[str, ...] = ()
        self.builds = 0
        for _ in range(self.author.most_plans):
            if self.builds > self.config.max_repairs:
                break
            plan = self._plan(subject, direction, findings)
            if isinstance(plan, str):
                self._refuse(f"{direction.value}: {plan}")
                return None
            outcome = self._build(subject, plan)
            if isinstance(outcome, StepEnd):
                return outcome
            findings = (*findings, finding(plan.operator, outcome))
            self._refuse(f"{direction.value}: {findings[-1]}")
        return None

    def _plan(
        self, subject: Subject, direction: Direction, findings: tuple[str, ...]
    ) -> Plan | str:
        """Loop 1: an accepted plan, or one line."""
        for _ in range(self.config.max_plan_revisions + 1):
            plan = self.author.propose(subject, direction, self.config, findings)
            if isinstance(plan, str):
                return plan
            review = self.author.review_plan(subject, plan)
            if review.is_accepted:
                self.journal.event("plan", plan.summary, operator=plan.operator)
                return plan
            findings = (*findings, *review.findings)
            self.journal.event("plan_returned", "; ".join(review.findings))
        return f"no plan was accepted: {findings[-1] if findings else 'without a finding'}"

    def _build(self, subject: Subject, plan: Plan) -> StepEnd | str:
        """Loop 2: the step's end, or one line on why this plan came to nothing."""
        evidence: Verdict | None = None
        said = "the budget of repairs is used up"
        while self.builds <= self.config.max_repairs:
            mutation = self.author.modify(subject, plan, evidence)
            if isinstance(mutation, str):
                return mutation if evidence is None else f"{said}; {mutation}"
            if any(mutation.proof == attempt.mutation.proof for attempt in self.attempts):
                return f"{said}; the same child again" if evidence else "the same child again"
            for name, other in self.others:
                if mutation.child.digest == other.digest:
                    return f"the same child as {name}"
            plan = replace(
                plan,
                notch=mutation.demand.notch,
                sequence=mutation.sequence,
                edit=mutation.edit,
                revision=plan.revision + (evidence is not None),
            )
            log = self.journal.open_candidate(plan, mutation, self.builds)
            case = replace(candidate(subject, mutation, self.config), others=self.others)
            evidence = verify(case, self.runner, log, pool=self.pool)
            if evidence.is_valid:
                try:
                    evidence = self._examined(case, evidence, log)
                except StepBudgetStop:
                    unknown = replace(evidence, status=GateStatus.INCONCLUSIVE)
                    self._close(Attempt(plan, mutation, unknown, self.builds))
                    raise
            self._close(Attempt(plan, mutation, evidence, self.builds))
            self.builds += 1
            if evidence.is_valid:
                return StepEnd.ACCEPTED
            if evidence.status is GateStatus.INCONCLUSIVE:
                return StepEnd.INCONCLUSIVE
            said = verdict_line(evidence)
        return said

    def _close(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self.journal.close_candidate(attempt)

    def _examined(self, case: Case, verdict: Verdict, log: TrialLog) -> Verdict:
        """The verdict with what the author's own gates say, up to the first that does not pass."""
        answers = list(verdict.gates)
        desk = Desk(self.runner, log, self.pool)
        for name, steps in self.author.examine(case).items():
            answer = desk.settle({name: steps})[name]
            answers.append(answer)
            log.gate(answer)
            if answer.status in (GateStatus.FAILED, GateStatus.INCONCLUSIVE):
                break
        return verdict_of(answers)


def verdict_line(verdict: Verdict) -> str:
    """Why a verdict is what it is, in one line."""
    if verdict.is_valid:
        return "valid"
    weak = verdict.failed or tuple(
        g for g in verdict.gates if g.is_blocking and g.status is verdict.status
    )
    return "; ".join(f"{gate.gate}: {gate.reason}" for gate in weak)
