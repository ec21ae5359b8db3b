"""From what a Modifier left to a whole child with the parts that prove it."""

from __future__ import annotations

import re
from dataclasses import replace

from evolution.agents.answers import Built
from evolution.agents.proposer import PREFIX
from evolution.agents.workbench import Draft
from evolution.bundle import Bundle, BundleError
from evolution.composition import composed, composing_refusal, configured
from evolution.contracts import Demand, FileEdit, Mutation, Plan, Statement, Subject
from evolution.directions import Effect
from evolution.gates.specs import edited
from evolution.language import is_foreign, language_complaint
from evolution.operators.wrapping import parent_checks, step_entries
from evolution.plain_text import plain
from evolution.validation import first_error
from sandbox.contracts import SandboxFile

SOLUTION = "solution/"
_ABSOLUTE = re.compile(r"/[\w./+-]+")


def base_of(subject: Subject) -> Bundle:
    """The parent as it is laid out for a Modifier: in the composed layout where that can be."""
    return subject.bundle if composing_refusal(subject.bundle) else composed(subject.bundle)


def demand_id(plan: Plan) -> str:
    """The name of the demand that a plan adds; its checks begin with it."""
    return plan.operator.removeprefix(PREFIX)


def child_of(subject: Subject, plan: Plan, draft: Draft) -> Bundle:
    """The child's files, its configuration filled in. Raises BundleError."""
    child = draft.applied_to(base_of(subject))
    cell = (plan.direction, plan.aspect)
    entries = step_entries(subject, plan.operator, cell, plan.effort)
    return configured(child, (), entries, plan.sequence)


def naive_edits(built: Built, draft: Draft) -> tuple[FileEdit, ...]:
    """The edits of the solution that leave the new piece out."""
    instead = {
        SOLUTION + file.path: replace(file, path=SOLUTION + file.path) for file in draft.naive
    }
    gone = {_below_solution(path) for path in built.naive_without}
    return tuple(FileEdit(path, instead.get(path)) for path in sorted(gone | instead.keys()))


def _below_solution(path: str) -> str:
    trimmed = path.strip().removeprefix("/bundle/").lstrip("/").removeprefix("./")
    return SOLUTION + trimmed.removeprefix(SOLUTION)


def naive_of(child: Bundle, omit: tuple[FileEdit, ...]) -> tuple[SandboxFile, ...]:
    """The whole naive solution (paths below `solution/`)."""
    return edited(child.folder("solution"), omit)


def complaint(subject: Subject, plan: Plan, built: Built, draft: Draft) -> str | None:
    """What is missing from a draft before any gate needs to look at it, in one line."""
    if said := _form_complaint(plan, built):
        return said
    if not draft.changed and not draft.removed:
        return "nothing below /bundle was changed"
    try:
        child = child_of(subject, plan, draft)
        problem = first_error(child)
    except BundleError as error:
        return f"{error.path}: {error.reason}"
    if problem is not None:
        return f"{problem.path}: {problem.reason}"
    base = base_of(subject)
    if child.by_path["instruction.md"] == base.by_path.get("instruction.md"):
        return "instruction.md is as before: it has to say what is wanted now"
    if is_foreign(child.instruction) and not is_foreign(base.instruction):
        return "instruction.md is in another language than before: write it in English"
    if child.folder("tests") == base.folder("tests"):
        return "the tests are as before: nothing would notice that the new demand is not met"
    omit = naive_edits(built, draft)
    unknown = [one.path for one in omit if one.file is None and one.path not in child.by_path]
    if unknown:
        return f"naive_without names {unknown[0]}, which the solution does not have"
    naive = naive_of(child, omit)
    if naive == child.folder("solution"):
        return "the naive solution is the reference solution: say what it lacks"
    if not any(file.path == "solve.sh" for file in naive):
        return "the naive solution has no solve.sh"
    strange = sorted(set(built.premise) - set(parent_checks(subject)))
    if strange:
        return f"premise names {strange[0]!r}, which is no check of the parent"
    return None


def _form_complaint(plan: Plan, built: Built) -> str | None:
    missing = [
        name for name in ("title", "why", "requirement", "checks") if not getattr(built, name)
    ]
    if missing:
        return f"{', '.join(missing)}: needed (or a refusal)"
    said = (built.title, built.why, built.situation, built.requirement)
    if foreign := language_complaint(said):
        return foreign
    if len(set(built.checks)) != len(built.checks):
        return "a check is named twice"
    if plan.effect is Effect.OBSERVATION and not built.discovery:
        return "effect observation needs `discovery`, a command that prints what is withheld"
    if plan.effect is not Effect.OBSERVATION and built.withheld:
        return "only a step of effect observation withholds facts"
    return None


def mutation_of(subject: Subject, plan: Plan, built: Built, draft: Draft) -> Mutation:
    """The child with its parts; `complaint` must have found nothing."""
    child = child_of(subject, plan, draft)
    omit = naive_edits(built, draft)
    naive = naive_of(child, omit)
    effect = plan.effect
    before = {file.path: file for file in base_of(subject).files}
    demand = Demand(
        id=demand_id(plan),
        operator=plan.operator,
        direction=plan.direction,
        aspect=plan.aspect,
        effect=effect,
        notch=plan.notch,
        title=plain(built.title),
        why=plain(built.why),
        statement=Statement(plain(built.situation), plain(built.requirement)),
        checks=tuple(built.checks),
        premise=tuple(built.premise),
        omit=omit,
        facts=tuple(("result", path) for path in built.results if _ABSOLUTE.fullmatch(path)),
    )
    return Mutation(
        child=child,
        demand=demand,
        edit=plan.edit,
        sequence=plan.sequence,
        adaptation=tuple(
            file.path
            for file in child.files
            if file.path.startswith(SOLUTION) and before.get(file.path) != file
        ),
        naive=naive,
        control=subject.bundle,
        wrong=naive if effect is Effect.VERIFIER else (),
        decoy=naive if effect is Effect.OBSERVATION else (),
        discovery=built.discovery if effect is Effect.OBSERVATION else "",
        withheld=tuple(built.withheld),
        before=subject.sequence,
        has_control=False,
    )
