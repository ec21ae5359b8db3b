"""From what a wrapper adds to a whole child, with the parts that prove it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files as resources

from evolution.bundle import Bundle
from evolution.composition import (
    BASE_CHECK,
    checks_path,
    composed,
    composing_refusal,
    configured,
)
from evolution.contracts import Demand, FileEdit, Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effort
from evolution.families.registry import instruction_of
from evolution.operators.base import Operator, facts, live
from evolution.rendering import render
from evolution.sequence import SequenceEdit, apply_edit
from sandbox.contracts import SandboxFile

_CONSTANT = re.compile(r"(?m)^([A-Z][A-Z0-9_]*)(: [^=\n]+)? = .*$")


@dataclass(frozen=True)
class Draft:
    """What a wrapper adds to an environment.

    `steps` are the adaptation (whole paths below `solution/`); `naive` are files that stand in
    their place in the naive solution (nothing by default); `careless` are steps that a wrong
    solution has on top. `is_premise_changed`: the original work depends on the adaptation.
    """

    notch: int
    edit: SequenceEdit
    statement: Statement
    why: str
    steps: tuple[SandboxFile, ...]
    checks: str
    check_names: tuple[str, ...]
    artifacts: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    environment: tuple[SandboxFile, ...] = ()
    removed: tuple[str, ...] = ()
    tests: tuple[SandboxFile, ...] = ()
    naive: tuple[SandboxFile, ...] = ()
    careless: tuple[SandboxFile, ...] = ()
    decoy: tuple[SandboxFile, ...] = ()
    discovery: str = ""
    withheld: tuple[str, ...] = ()
    is_premise_changed: bool = False


def wrapping_refusal(operator: Operator, subject: Subject) -> str | None:
    """What keeps any wrapper out, in one line; None when nothing does."""
    if live(subject, operator.name):
        return f"{operator.name} is a demand that is already met"
    return composing_refusal(subject.bundle)


def parent_checks(subject: Subject) -> tuple[str, ...]:
    """The names of the checks of the environment as it is."""
    seen = [check.name for check in subject.oracle.result.checks] if subject.oracle else []
    seen += [check for demand in subject.demands for check in demand.checks]
    return tuple(sorted(set(seen) or {BASE_CHECK}))


def part(operator: str, name: str, constants: Mapping[str, object] | None = None) -> bytes:
    """A script of an operator with its constants filled in. Raises ValueError on an unknown one."""
    text = resources(f"evolution.operators.parts.{operator}").joinpath(name).read_text("utf-8")
    left = dict(constants or {})

    def fill(match: re.Match[str]) -> str:
        if match[1] not in left:
            return match[0]
        return f"{match[1]}{match[2] or ''} = {literal(left.pop(match[1]))}"

    filled = _CONSTANT.sub(fill, text)
    if left:
        raise ValueError(f"{operator}/{name} has no constant {', '.join(left)}")
    return filled.encode()


def literal(value: object) -> str:
    """A Python literal of plain data, as a person would write it."""
    if isinstance(value, str | int | float | list | dict) and not isinstance(value, bool):
        return json.dumps(value, ensure_ascii=True)
    return repr(value)


def step_pair(path: str, script: bytes, note: str) -> tuple[SandboxFile, ...]:
    """A step that is a Python script beside a line of shell that starts it."""
    beside = path.removesuffix(".sh") + ".py"
    name = beside.rsplit("/", 1)[-1]
    shell = f'#!/bin/bash\n# {note}\nset -euo pipefail\npython3 -I -B "$(dirname "$0")/{name}"\n'
    return SandboxFile(path, shell.encode(), 0o755), SandboxFile(beside, script)


def build(operator: Operator, subject: Subject, draft: Draft) -> Mutation:
    """The child and its parts, from what the wrapper adds."""
    base = composed(subject.bundle)
    sequence = apply_edit(subject.sequence, draft.edit)
    demand = Demand(
        id=operator.name,
        operator=operator.name,
        direction=operator.direction,
        aspect=operator.aspect,
        effect=operator.effect,
        notch=draft.notch,
        title=operator.title,
        why=draft.why,
        statement=draft.statement,
        checks=tuple(f"{operator.name}.{name}" for name in draft.check_names),
        premise=parent_checks(subject) if draft.is_premise_changed else (),
        omit=_omit(draft),
        facts=draft.facts,
    )
    tests = (SandboxFile(checks_path(operator.name), draft.checks.encode()), *draft.tests)
    child = base.with_files((*draft.environment, *draft.steps, *tests), draft.removed)
    child = configured(child, draft.artifacts, lineage_entries(operator, subject), sequence)
    child = child.with_files([_instruction(subject, demand, child)])
    control = _control(draft, base, child, tuple(test.path for test in tests))
    return Mutation(
        child=child,
        demand=demand,
        edit=draft.edit,
        sequence=sequence,
        adaptation=tuple(step.path for step in draft.steps),
        naive=_solution(child, draft.naive, draft)
        if not draft.careless
        else _careless(child, draft),
        control=control,
        wrong=_careless(child, draft) if draft.careless else (),
        decoy=_solution(child, draft.decoy, draft) if draft.decoy else (),
        discovery=draft.discovery,
        withheld=draft.withheld,
    )


def _omit(draft: Draft) -> tuple[FileEdit, ...]:
    if draft.careless:
        return tuple(FileEdit(file.path, file) for file in draft.careless)
    instead = {file.path: file for file in draft.naive}
    paths = sorted({step.path for step in draft.steps} | instead.keys())
    return tuple(FileEdit(path, instead.get(path)) for path in paths)


def _solution(
    child: Bundle, instead: tuple[SandboxFile, ...], draft: Draft
) -> tuple[SandboxFile, ...]:
    """The child's solution with the adaptation replaced."""
    gone = [step.path for step in draft.steps]
    return child.with_files(
        instead, [p for p in gone if p not in {f.path for f in instead}]
    ).folder("solution")


def _careless(child: Bundle, draft: Draft) -> tuple[SandboxFile, ...]:
    return child.with_files(draft.careless).folder("solution")


def _control(draft: Draft, base: Bundle, child: Bundle, added: tuple[str, ...]) -> Bundle:
    """The child with the operator off: the parent's environment, and the parent's tests.

    Where the demand changes the premise of the work, its checks hold in the parent's world, too,
    and stay.
    """
    if not draft.is_premise_changed:
        child = child.with_files((), added)
    if not (draft.environment or draft.removed):
        return child
    kept = [file for file in child.files if not file.path.startswith("environment/")]
    return Bundle.of([*kept, *(f for f in base.files if f.path.startswith("environment/"))])


def _instruction(subject: Subject, demand: Demand, child: Bundle) -> SandboxFile:
    own = instruction_of(child)
    text = own if own is not None else subject.root_instruction
    demands = [d for d in subject.demands if own is None or not facts(d, "gene")]
    return SandboxFile("instruction.md", render(text, [*demands, demand]).encode())


def lineage_entries(operator: Operator, subject: Subject) -> dict[str, object]:
    """What `[metadata.ratchet]` of the child says about where it comes from."""
    cell = (operator.direction, operator.aspect)
    return step_entries(subject, operator.name, cell, Effort.LOW)


def step_entries(
    subject: Subject, operator: str, cell: tuple[Direction, Aspect], effort: Effort
) -> dict[str, object]:
    """The same for a step that is not an operator's."""
    metadata = subject.bundle.config.get("metadata")
    own = metadata.get("ratchet", {}) if isinstance(metadata, dict) else {}
    root = own.get("root") if isinstance(own, dict) and subject.generation else None
    parent = subject.stored_digest or subject.bundle.digest
    return {
        "generation": subject.generation + 1,
        "parent": parent,
        "root": root if isinstance(root, str) else parent,
        "direction": cell[0].value,
        "aspect": cell[1].value,
        "effort": effort.value,
        "operators": [*(demand.operator for demand in subject.demands), operator],
    }
