"""Whether the direction that a step declares happened."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from evolution.contracts import GateResult, GateStatus, Mutation, StepConfig
from evolution.directions import Direction
from evolution.gates import sequence
from evolution.gates.case import Case, candidate
from evolution.operators.base import Kind, Operator
from evolution.operators.registry import OPERATORS
from evolution.sequence import EditKind, Pair, SequenceEdit, apply_edit
from tests.evolution.operators.subjects import small

PARENT = small()
WRAPPERS = tuple(one for one in OPERATORS if one.kind is Kind.WRAPPER)


def made(direction: Direction) -> Mutation:
    one = next(o for o in WRAPPERS if o.direction is direction and o.applies_to(PARENT) is None)
    return one.apply(PARENT, one.notches[0], random.Random(1))


def judged(mutation: Mutation) -> GateResult:
    return sequence.check(candidate(PARENT, mutation, StepConfig(seed=1)))


@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_every_wrapper_does_what_it_declares(one: Operator) -> None:
    assert one.applies_to(PARENT) is None
    answer = judged(one.apply(PARENT, one.notches[-1], random.Random(2)))
    assert answer.status is GateStatus.PASSED, answer.reason


def test_a_direction_with_another_edit_is_refused() -> None:
    skill = made(Direction.SKILL)
    wrong = replace(skill, demand=replace(skill.demand, direction=Direction.LENGTH))
    assert judged(wrong).reason == "the direction is length, but the edit is replace skill"


def test_a_sequence_that_the_edit_does_not_give_is_refused() -> None:
    skill = made(Direction.SKILL)
    answer = judged(replace(skill, sequence=PARENT.sequence))
    assert answer.status is GateStatus.FAILED
    assert "not what the declared edit makes" in answer.reason


def test_the_same_skill_in_other_letters_is_no_new_skill() -> None:
    old = PARENT.sequence[0]
    edit = SequenceEdit(
        EditKind.REPLACE_SKILL, 0, Pair(old.scenario, f"  {old.skill.upper().replace(' ', '-')}!")
    )
    skill = made(Direction.SKILL)
    answer = judged(replace(skill, edit=edit, sequence=apply_edit(PARENT.sequence, edit)))
    assert "only written otherwise" in answer.reason


def test_a_pair_that_is_there_already_adds_no_length() -> None:
    edit = SequenceEdit(EditKind.INSERT, 2, PARENT.sequence[0])
    length = made(Direction.LENGTH)
    answer = judged(replace(length, edit=edit, sequence=apply_edit(PARENT.sequence, edit)))
    assert "has already" in answer.reason


def test_a_new_scenario_in_an_unchanged_world_is_refused() -> None:
    scenario = made(Direction.SCENARIO)
    parent = PARENT.bundle
    kept = [f for f in scenario.child.files if not f.path.startswith(("environment/", "instr"))]
    same = [f for f in parent.files if f.path.startswith(("environment/", "instr"))]
    answer = judged(replace(scenario, child=type(parent).of([*kept, *same])))
    assert "what the solver meets is as before" in answer.reason


def test_a_new_step_without_new_work_is_refused() -> None:
    length = made(Direction.LENGTH)
    parent = PARENT.bundle
    kept = [f for f in length.child.files if not f.path.startswith("solution/")]
    same = [f for f in parent.files if f.path.startswith("solution/")]
    answer = judged(replace(length, child=type(parent).of([*kept, *same])))
    assert "the reference solution is as before" in answer.reason


def test_a_seed_has_no_direction() -> None:
    answer = sequence.check(Case(PARENT, StepConfig(seed=1)))
    assert answer.status is GateStatus.NOT_APPLICABLE
