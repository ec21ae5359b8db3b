"""Whether the direction that a step declares happened."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from evolution.contracts import GateResult, GateStatus, Mutation, OracleFacts, StepConfig
from evolution.directions import Direction, Effect
from evolution.gates import sequence
from evolution.gates.case import Case, candidate
from evolution.operators.base import Kind, Operator
from evolution.operators.registry import OPERATORS
from evolution.sequence import EditKind, Pair, SequenceEdit, apply_edit
from sandbox.contracts import Outcome, SandboxFile, Trace, TrialResult
from tests.evolution.operators.subjects import INPUT, small

PARENT = small()
WRAPPERS = tuple(one for one in OPERATORS if one.kind is Kind.WRAPPER)


def made(direction: Direction) -> Mutation:
    one = next(o for o in WRAPPERS if o.direction is direction and o.applies_to(PARENT) is None)
    return one.apply(PARENT, one.notches[0], random.Random(1))


def judged(mutation: Mutation) -> GateResult:
    """What the files say against it."""
    answer = sequence.foreseen(candidate(PARENT, mutation, StepConfig(seed=1)))
    assert answer is not None
    return answer


def result(*left: SandboxFile, **seen: Any) -> TrialResult:
    """A traced run that passed."""
    return TrialResult(Outcome.PASS, state=left, trace=Trace(**seen))


def seen(mutation: Mutation, child: TrialResult, parent: TrialResult) -> GateResult:
    """What the runs say, too."""
    return sequence.judge(PARENT, mutation, child, parent)


@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_every_wrapper_does_what_it_declares(one: Operator) -> None:
    assert one.applies_to(PARENT) is None
    mutation = one.apply(PARENT, one.notches[-1], random.Random(2))
    assert sequence.foreseen(candidate(PARENT, mutation, StepConfig(seed=1))) is None


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


def test_a_scenario_that_is_only_told_is_none_unless_it_is_about_what_is_seen() -> None:
    scenario = made(Direction.SCENARIO)
    parent = PARENT.bundle
    kept = [f for f in scenario.child.files if not f.path.startswith("environment/")]
    same = [f for f in parent.files if f.path.startswith("environment/")]
    told = replace(scenario, child=type(parent).of([*kept, *same]))
    assert "what the solver meets is as before" in judged(told).reason
    demand = replace(told.demand, effect=Effect.OBSERVATION)
    about = candidate(PARENT, replace(told, demand=demand), StepConfig(seed=1))
    assert sequence.foreseen(about) is None


REPORT, LIST = "/app/out/report.json", "/app/out/list.tsv"
BEFORE = result(
    SandboxFile(REPORT, b"1"),
    read=(INPUT, "/tmp/x"),
    written=(REPORT, "/tmp/x"),
    commands=(("sort", INPUT),),
)
ONE_MORE = result(
    SandboxFile(REPORT, b"1"),
    SandboxFile(LIST, b"2"),
    read=(INPUT, REPORT),
    written=(REPORT, LIST),
    commands=(("sort", INPUT), ("sha256sum", REPORT)),
)
ANOTHER_WORLD = result(
    SandboxFile(REPORT, b"1"),
    read=(INPUT, "/app/spool/orders.enc", "/tmp/y"),
    written=(INPUT, REPORT, "/tmp/y"),
    commands=(("iconv", "/app/spool/orders.enc"), ("sort", INPUT)),
)
OTHER_TOOLS = result(
    SandboxFile(REPORT, b"1"), read=(INPUT,), written=(REPORT,), commands=(("awk", INPUT),)
)


@pytest.mark.parametrize(
    ("direction", "child", "said"),
    [
        (Direction.LENGTH, ONE_MORE, ""),
        (Direction.LENGTH, ANOTHER_WORLD, "nothing else is left, and no earlier work read"),
        (Direction.LENGTH, OTHER_TOOLS, "nothing else is left, and no earlier work read"),
        (Direction.SCENARIO, ANOTHER_WORLD, ""),
        (Direction.SCENARIO, ONE_MORE, f"a step is added: it reads {REPORT} and leaves {LIST}"),
        (Direction.SCENARIO, OTHER_TOOLS, "skills do: sort used no more"),
        (Direction.SKILL, OTHER_TOOLS, ""),
        (Direction.SKILL, ONE_MORE, f"a step is added: it reads {REPORT} and leaves {LIST}"),
    ],
)
def test_what_was_done_has_to_fit_the_direction(
    direction: Direction, child: TrialResult, said: str
) -> None:
    mutation = made(direction)
    mutation = replace(mutation, demand=replace(mutation.demand, effect=Effect.SOLUTION))
    answer = seen(mutation, child, BEFORE)
    assert answer.status is (GateStatus.FAILED if said else GateStatus.PASSED)
    assert said in answer.reason
    assert not answer.reason.endswith("could not be followed")


def test_a_budget_may_be_weighed_by_a_step_of_its_own() -> None:
    mutation = made(Direction.SKILL)
    budget = replace(mutation, demand=replace(mutation.demand, effect=Effect.BUDGET))
    assert seen(budget, ONE_MORE, BEFORE).status is GateStatus.PASSED


def without_input(*added: SandboxFile) -> Mutation:
    """A step of skill whose world has the orders no more, but these files."""
    mutation = made(Direction.SKILL)
    child = PARENT.bundle.with_files(added, ["environment/data/orders.csv"])
    return replace(mutation, child=child, demand=replace(mutation.demand, effect=Effect.SOLUTION))


MADE_AGAIN = replace(
    BEFORE,
    trace=Trace(
        read=("/app/spool/orders", INPUT),
        written=(INPUT, REPORT),
        commands=(("iconv", "/app/spool/orders"), ("sort", INPUT)),
    ),
)


def test_an_input_that_is_gone_and_made_again_is_no_matter_of_skill_alone() -> None:
    step = without_input(SandboxFile("environment/spool/orders", b"encoded"))
    answer = seen(step, MADE_AGAIN, BEFORE)
    assert answer.status is GateStatus.FAILED
    assert f"{INPUT} is given no more, and the solution makes it again" in answer.reason
    kept = replace(step, child=PARENT.bundle)
    assert seen(kept, MADE_AGAIN, BEFORE).status is GateStatus.PASSED


@pytest.mark.parametrize(
    "command", [("/app/feed/client", "1"), ("/usr/bin/python3", "/app/feed/client", "1")]
)
def test_a_new_program_that_gives_the_input_has_to_be_mastered(command: tuple[str, ...]) -> None:
    step = without_input(SandboxFile("environment/feed/client", b"#!/bin/sh\n", 0o755))
    assert MADE_AGAIN.trace is not None
    trace = replace(MADE_AGAIN.trace, commands=(command,), programs=(command[0].split("/")[-1],))
    assert seen(step, replace(MADE_AGAIN, trace=trace), BEFORE).status is GateStatus.PASSED


def test_a_delivery_at_another_place_is_a_step_of_its_own() -> None:
    elsewhere = "/app/followup/answer.json"
    child = replace(
        BEFORE,
        state=(*(BEFORE.state or ()), SandboxFile(elsewhere, b"3")),
        trace=Trace(read=(INPUT,), written=(REPORT, elsewhere), commands=(("sort", INPUT),)),
    )
    mutation = made(Direction.SKILL)
    mutation = replace(mutation, demand=replace(mutation.demand, effect=Effect.SOLUTION))
    answer = seen(mutation, child, BEFORE)
    assert answer.status is GateStatus.FAILED
    assert f"delivers {elsewhere}, where nothing had to be left before" in answer.reason


def test_runs_that_could_not_be_followed_leave_it_to_the_files() -> None:
    blind = replace(ANOTHER_WORLD, trace=Trace(is_complete=False))
    for child, parent in ((blind, BEFORE), (ANOTHER_WORLD, replace(BEFORE, trace=None))):
        answer = seen(made(Direction.LENGTH), child, parent)
        assert answer.status is GateStatus.PASSED
        assert answer.reason.endswith("what the solutions did could not be followed")


def test_a_parents_run_is_made_where_none_is_known() -> None:
    unknown = replace(PARENT, oracle=None)
    asked = next(sequence.check(candidate(unknown, made(Direction.LENGTH), StepConfig(seed=1))))
    assert [ask.solver for ask in asked] == ["oracle", "parent_oracle"]
    assert all(ask.spec.is_traced and ask.spec.keep_state for ask in asked)
    known = replace(PARENT, oracle=OracleFacts(BEFORE, 0.1, None))
    steps = sequence.check(candidate(known, made(Direction.LENGTH), StepConfig(seed=1)))
    assert [ask.solver for ask in next(steps)] == ["oracle"]


def test_a_seed_has_no_direction() -> None:
    case = Case(PARENT, StepConfig(seed=1))
    assert sequence.foreseen(case) is None
    with pytest.raises(StopIteration) as end:
        next(sequence.check(case))
    answer: GateResult = end.value.value
    assert answer.status is GateStatus.NOT_APPLICABLE
