"""`sequence`: did the declared direction happen? Judged from the files and the records alone.

A step edits the scenario-skill sequence in one way: `length` inserts a pair, `skill` replaces a
skill at equal length, `scenario` replaces a situation and keeps the skill. The new words must be
new, and the part of the environment that carries the edit must differ from the parent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from evolution.bundle import Bundle
from evolution.contracts import Evidence, GateResult, Mutation, Subject
from evolution.directions import Direction
from evolution.gates.answers import failed, not_applicable, passed
from evolution.gates.case import Case
from evolution.sequence import (
    KIND_OF_DIRECTION,
    EditKind,
    Pair,
    Sequence,
    SequenceEdit,
    apply_edit,
)

GATE = "sequence"
_NOISE = re.compile(r"[\W_]+")


def check(case: Case) -> GateResult:
    """Compare the child's sequence and files with its parent's; nothing is run."""
    mutation, parent = case.mutation, case.parent
    if mutation is None or parent is None:
        return not_applicable(GATE, "no step is at hand whose direction could be judged")
    evidence = [
        Evidence(label="before", result=_told(mutation.before or parent.sequence)),
        Evidence(label="after", result=_told(mutation.sequence)),
    ]
    direction = mutation.demand.direction
    said = _edit_complaint(parent, mutation) or _carrier_complaint(
        parent.bundle, case.bundle, direction
    )
    if said:
        return failed(GATE, said, evidence)
    growth = len(mutation.sequence) - len(mutation.before or parent.sequence)
    return passed(
        GATE,
        f"the {direction.value} changed as declared, in pair {mutation.edit.index + 1}"
        f" of {len(mutation.sequence)}",
        evidence,
        pairs=float(len(mutation.sequence)),
        inserted=float(growth),
    )


def _edit_complaint(parent: Subject, mutation: Mutation) -> str | None:
    """What is wrong with the edit of the sequence, in one line."""
    edit, direction = mutation.edit, mutation.demand.direction
    sequence = mutation.before or parent.sequence
    for part in edit.parts:
        if part.kind is not KIND_OF_DIRECTION[direction]:
            return f"the direction is {direction.value}, but the edit is {_words(part.kind)}"
    try:
        expected = apply_edit(sequence, edit)
    except ValueError as error:
        return f"the edit does not fit the parent's sequence: {error}"
    if mutation.sequence != expected:
        return "the sequence is not what the declared edit makes of the parent's"
    for part in edit.parts:
        if said := _pair_complaint(sequence, part):
            return said
        sequence = apply_edit(sequence, part)
    return None


def _pair_complaint(sequence: Sequence, edit: SequenceEdit) -> str | None:
    """What is wrong with one new pair, in one line."""
    if not _core(edit.pair.scenario) or not _core(edit.pair.skill):
        return "the new pair names no scenario or no skill"
    if edit.kind is EditKind.INSERT:
        if _pair_core(edit.pair) in map(_pair_core, sequence):
            return "the inserted pair is one that the sequence has already"
    elif _pair_core(edit.pair) == _pair_core(sequence[edit.index]):
        return "the replaced pair says the same as before, only written otherwise"
    return None


def _carrier_complaint(before: Bundle, after: Bundle, direction: Direction) -> str | None:
    """What had to change for this direction and did not, in one line."""
    if direction is Direction.SCENARIO and not _differ(before, after, ("environment/", "instr")):
        return "the scenario is said to change, but what the solver meets is as before"
    if direction is Direction.LENGTH and not _differ(before, after, ("solution/",)):
        return "a step is said to be added, but the reference solution is as before"
    return None


def _differ(before: Bundle, after: Bundle, heads: tuple[str, ...]) -> bool:
    """Whether the files below these heads differ."""
    return _below(before, heads) != _below(after, heads)


def _below(bundle: Bundle, heads: tuple[str, ...]) -> set[tuple[str, str, int]]:
    return {(f.path, f.digest, f.mode) for f in bundle.files if f.path.startswith(heads)}


def _core(text: str) -> str:
    """A phrase without what makes no difference: case, white space, punctuation."""
    return _NOISE.sub(" ", text.casefold()).strip()


def _pair_core(pair: Pair) -> tuple[str, str]:
    return _core(pair.scenario), _core(pair.skill)


def _words(kind: EditKind) -> str:
    return kind.value.replace("_", " ")


def _told(sequence: Sequence | Iterable[Pair]) -> str:
    return " → ".join(f"{pair.scenario} / {pair.skill}" for pair in sequence)
