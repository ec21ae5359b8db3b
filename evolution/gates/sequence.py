"""`sequence`: did the declared direction happen? Judged by files, records and traced runs.

A step edits the scenario-skill sequence in one way: `length` inserts a pair, `skill` replaces a
skill at equal length, `scenario` replaces a situation and keeps the skill. The new words must be
new, and the part of the environment that carries the edit must differ from the parent's. What the
traces of both reference solutions say against it, `sequence_traces` tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from evolution import execution
from evolution.bundle import Bundle
from evolution.contracts import Demand, Evidence, GateResult, Mutation, Subject
from evolution.directions import Direction, Effect
from evolution.gates.answers import (
    failed,
    inconclusive,
    machinery_fault,
    not_applicable,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.sequence_traces import complaint, run_of
from evolution.gates.specs import oracle_asks
from evolution.sequence import (
    KIND_OF_DIRECTION,
    EditKind,
    Pair,
    Sequence,
    SequenceEdit,
    apply_edit,
)
from sandbox.contracts import TrialResult

GATE = "sequence"
_NOISE = re.compile(r"[\W_]+")


def foreseen(case: Case) -> GateResult | None:
    """What files and records alone say against it; None where they say nothing."""
    mutation, parent = case.mutation, case.parent
    if mutation is None or parent is None:
        return None
    said = _edit_complaint(parent, mutation) or _carrier_complaint(
        parent.bundle, case.bundle, mutation.demand
    )
    return failed(GATE, said, _evidence(parent, mutation)) if said else None


def check(case: Case) -> Steps:
    """Compare the files and records first, then what the reference solutions were seen to do."""
    mutation, parent = case.mutation, case.parent
    if mutation is None or parent is None:
        return not_applicable(GATE, "no step is at hand whose direction could be judged")
    if said := foreseen(case):
        return said
    asks = (oracle_asks(case)[0], *(() if parent.oracle else (_parents_oracle(parent),)))
    child, *others = yield asks
    earlier = parent.oracle.result if parent.oracle else others[0]
    if fault := machinery_fault((child, earlier)):
        return inconclusive(GATE, fault)
    return judge(parent, mutation, child, earlier)


def judge(
    parent: Subject, mutation: Mutation, child: TrialResult, earlier: TrialResult
) -> GateResult:
    """The gate's answer from the runs of both reference solutions; the files are as they should."""
    direction, evidence = mutation.demand.direction, _evidence(parent, mutation)
    before, after = run_of(parent.bundle, earlier), run_of(mutation.child, child)
    note = "; by the files alone: what the solutions did could not be followed"
    if before is not None and after is not None:
        note = ""
        new = sorted(after.skills - before.skills), sorted(before.skills - after.skills)
        told = (f"{label}: {', '.join(names)}" for label, names in zip(_SKILLS, new, strict=True))
        evidence.append(Evidence(label="skills seen", result="; ".join(told)))
        if said := complaint(before, after, direction, mutation.demand.effect):
            return failed(GATE, said, evidence)
    growth = len(mutation.sequence) - len(mutation.before or parent.sequence)
    return passed(
        GATE,
        f"the {direction.value} changed as declared, in pair {mutation.edit.index + 1}"
        f" of {len(mutation.sequence)}{note}",
        evidence,
        pairs=float(len(mutation.sequence)),
        inserted=float(growth),
    )


_SKILLS = ("new", "used no more")


def _parents_oracle(parent: Subject) -> Ask:
    """The traced run of the parent's own solution, which a re-verification has to make itself."""
    solver = execution.oracle(parent.bundle)
    spec = execution.trial_spec(parent.bundle, solver, is_traced=True, keep_state=True)
    return Ask(spec, "parent_oracle")


def _evidence(parent: Subject, mutation: Mutation) -> list[Evidence]:
    return [
        Evidence(label="before", result=_told(mutation.before or parent.sequence)),
        Evidence(label="after", result=_told(mutation.sequence)),
    ]


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


def _carrier_complaint(before: Bundle, after: Bundle, demand: Demand) -> str | None:
    """What had to change for this direction and did not, in one line."""
    direction, is_seen = demand.direction, demand.effect is Effect.OBSERVATION
    heads = ("environment/", "instr") if is_seen else ("environment/",)
    if direction is Direction.SCENARIO and not _differ(before, after, heads):
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
