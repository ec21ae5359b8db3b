"""Two verifications ask the same question only where all that decides its answer is the same."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import msgspec
import pytest

from evolution import execution
from evolution.contracts import Mutation, StepConfig, Subject
from evolution.directions import Direction
from evolution.gates.case import Case, Depth
from evolution.gates.protocol import GATES
from evolution.gates.questions import question
from sandbox.contracts import Image, SandboxFile
from tests.evolution.toy_world import MoreWords, toy_bundle, toy_subject

IMAGE = Image("d" * 64, "bubblewrap", "layer", "/app")
PARENT = toy_subject()
MUTATION = MoreWords("toy", Direction.LENGTH).apply(PARENT, 1, random.Random(1))
CHILD = replace(PARENT, bundle=MUTATION.child, demands=(MUTATION.demand,), generation=1)
CASE = Case(CHILD, StepConfig(seed=1), mutation=MUTATION, parent=PARENT)
TRIALS = {
    *("oracle", "nop", "demand", "sequence", "contract", "headroom", "demands"),
    *("parent_solution", "mutants", "image_leak", "hermetic", "alternatives", "exploits"),
}


def questions(case: Case, *images: Image) -> dict[str, str]:
    return {gate: question(gate, case, images or (IMAGE,)) for gate in GATES}


def changed(case: Case, *images: Image) -> set[str]:
    """The gates whose question is another one than in the usual case."""
    before, after = questions(CASE), questions(case, *images)
    return {gate for gate in GATES if before[gate] != after[gate]}


def test_gates_that_run_trials_have_a_question_and_no_two_share_it() -> None:
    asked = {gate: key for gate, key in questions(CASE).items() if key}
    assert set(asked) == TRIALS
    assert len(set(asked.values())) == len(TRIALS)
    assert changed(CASE) == set()


@pytest.mark.parametrize(
    ("case", "gates"),
    [
        (replace(CASE, config=StepConfig(seed=2)), {"mutants"}),
        (replace(CASE, config=StepConfig(seed=1, mutant_count=30)), {"mutants"}),
        (replace(CASE, config=StepConfig(seed=1, nop_runs=4)), {"nop"}),
        (replace(CASE, config=StepConfig(seed=1, oracle_runs=4)), {"oracle", "headroom", "demand"}),
        (replace(CASE, depth=Depth.FULL), {"oracle", "headroom", "demand", "nop"}),
        (replace(CASE, subject=replace(CHILD, demands=())), {"demands"}),
        (replace(CASE, parent=None), {"demand", "sequence", "parent_solution", "mutants"}),
        (replace(CASE, mutation=None), {"demand", "sequence", "parent_solution", "mutants"}),
        (
            replace(CASE, mutation=replace(MUTATION, naive=())),
            {"demand", "sequence", "parent_solution", "mutants"},
        ),
        (replace(CASE, subject=replace(CHILD, bundle=toy_bundle(["other"]))), TRIALS),
    ],
)
def test_only_gates_that_look_at_what_changed_ask_something_else(
    case: Case, gates: set[str]
) -> None:
    assert changed(case) == gates


@pytest.mark.parametrize(
    "image",
    [replace(IMAGE, backend="docker"), replace(IMAGE, digest="e" * 64), replace(IMAGE, ref="x")],
)
def test_other_images_and_back_ends_are_other_questions(image: Image) -> None:
    assert changed(CASE, image) == changed(CASE, IMAGE, image) == TRIALS


def test_another_toolchain_is_another_question_where_it_runs_the_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = (
        b"#!/bin/bash\ncurl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh\n"
        b"source $HOME/.local/bin/env\nuvx -w pytest==8.4.1 pytest /tests/test_it.py\n"
        b"if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    )
    foreign = CHILD.bundle.with_files([SandboxFile("tests/test.sh", script, 0o755)])
    found = execution.preamble(foreign)
    assert found is not None
    assert found.use is not None
    cases = [
        CASE,
        replace(CASE, subject=replace(CHILD, bundle=foreign)),
        replace(CASE, parent=replace(PARENT, bundle=foreign)),
    ]
    before = [questions(case) for case in cases]
    monkeypatch.setattr(sys, "base_prefix", "/another/python")
    after = [questions(case) for case in cases]
    others = [
        {gate for gate in GATES if b[gate] != a[gate]} for b, a in zip(before, after, strict=True)
    ]
    assert others == [set(), TRIALS, TRIALS]


def test_what_was_stored_in_between_asks_the_same() -> None:
    def stored[T](value: T, kind: type[T]) -> T:
        return msgspec.json.decode(msgspec.json.encode(value), type=kind)

    parent = stored(PARENT, Subject)
    case = replace(
        CASE, subject=stored(CHILD, Subject), mutation=stored(MUTATION, Mutation), parent=parent
    )
    assert changed(case) == set()
