"""The Proposer: plans one step in one direction."""

from __future__ import annotations

from evolution.agents import briefing
from evolution.agents.answers import PairEdit, Proposal
from evolution.agents.asking import Question, make
from evolution.agents.means import Means
from evolution.agents.trimming import Bounds
from evolution.contracts import Plan, StepConfig, Subject
from evolution.directions import Direction, Effect
from evolution.language import language_complaint
from evolution.llm.calls import Role
from evolution.plain_text import plain
from evolution.prompts import prompt
from evolution.roles.plan_reviewer import LONGEST_SEQUENCE, effort_complaint
from evolution.sequence import KIND_OF_DIRECTION, Pair, SequenceEdit, apply_edit

PREFIX = "llm:"
"""What the names of operators begin with that a model made up."""
PROMPT = prompt("proposer", "house")
PROVABLE = (Effect.SOLUTION, Effect.VERIFIER, Effect.OBSERVATION)


def propose(
    means: Means,
    subject: Subject,
    direction: Direction,
    config: StepConfig,
    findings: tuple[str, ...],
) -> Plan | str:
    """A plan in this direction, or one line that says why there is none."""
    return make(
        means.models,
        Question(
            role=Role.PROPOSER,
            place=f"{config.seed}/{direction.value}/propose/{len(findings)}",
            prompt=PROMPT,
            text=_text(means.bounds, subject, direction, config, findings),
            answer=Proposal,
            turns=means.turns.propose,
        ),
        means.bounds,
        lambda answer: plan_of(answer, subject, direction, config, len(findings)),
        gave_up="the proposer gave up",
        refused="the proposer sees no step",
    )


def _text(
    bounds: Bounds,
    subject: Subject,
    direction: Direction,
    config: StepConfig,
    findings: tuple[str, ...],
) -> str:
    parts = [
        f"Plan a step in the direction `{direction.value}` with effort `{config.effort.value}`.",
        briefing.used_cells(subject.demands),
    ]
    if config.avoid:
        parts.append(f"Used by siblings of the child to be made: {', '.join(config.avoid[:40])}.")
    parts += [briefing.environment(subject, bounds), briefing.findings_text(findings, bounds)]
    return "\n\n".join(filter(None, parts))


def plan_of(
    answer: Proposal, subject: Subject, direction: Direction, config: StepConfig, revision: int
) -> Plan | str:
    """The plan that a proposal stands for, or what is wrong with its form in one line."""
    if not answer.operator or not answer.edits or not answer.summary or not answer.details:
        return "operator, edits, summary and details are needed (or a refusal)"
    if said := language_complaint((answer.summary, answer.why, answer.details)):
        return said
    if answer.effect not in PROVABLE:
        return f"effect must be one of {', '.join(one.value for one in PROVABLE)}"
    operator = PREFIX + answer.operator
    if any(
        answer.operator in (d.id, d.operator, d.operator.removeprefix(PREFIX))
        for d in subject.demands
    ):
        return f"{answer.operator} is a demand of this lineage already: find another one"
    edit = edit_of(direction, answer.edits)
    try:
        sequence = apply_edit(subject.sequence, edit)
    except ValueError as error:
        return f"the edits do not fit the sequence: {error}"
    if len(sequence) > LONGEST_SEQUENCE:
        return f"a sequence of {len(sequence)} pairs is too long, {LONGEST_SEQUENCE} are the most"
    plan = Plan(
        operator=operator,
        direction=direction,
        aspect=answer.aspect,
        effort=config.effort,
        notch=1,
        sequence=sequence,
        edit=edit,
        summary=plain(answer.summary),
        why=plain(answer.why),
        seed=config.seed,
        revision=revision,
        effect=answer.effect,
        details=answer.details,
    )
    return effort_complaint(subject.sequence, plan) or plan


def edit_of(direction: Direction, edits: list[PairEdit]) -> SequenceEdit:
    """The edits of a proposal as one edit of the sequence."""
    parts = [
        SequenceEdit(
            KIND_OF_DIRECTION[direction], one.index, Pair(plain(one.scenario), plain(one.skill))
        )
        for one in edits
    ]
    return SequenceEdit(parts[0].kind, parts[0].index, parts[0].pair, tuple(parts[1:]))
