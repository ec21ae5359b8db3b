"""Near-duplicates of parent, siblings and others; honest relatives are let be."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus, Mutation, StepConfig
from evolution.gates import novel
from evolution.gates.case import Case, candidate
from evolution.operators.base import Kind, Operator
from evolution.operators.registry import OPERATORS, operator
from sandbox.contracts import SandboxFile
from tests.evolution.operators.subjects import SEEDS, seed, small
from tests.evolution.real_sandbox import edited, orders, subject_of

PARENT = small()
CONFIG = StepConfig(seed=1)
WRAPPERS = tuple(one for one in OPERATORS if one.kind is Kind.WRAPPER)


def child(name: str, number: int = 1) -> Mutation:
    one = operator(name)
    return one.apply(PARENT, one.notches[0], random.Random(number))


def judged(mutation: Mutation, *others: tuple[str, Bundle]) -> GateResult:
    return novel.check(replace(candidate(PARENT, mutation, CONFIG), others=others))


def alone(bundle: Bundle, *others: tuple[str, Bundle]) -> GateResult:
    return novel.check(Case(subject_of(bundle), CONFIG, others=others))


@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_children_by_different_operators_are_new(one: Operator) -> None:
    mutation = one.apply(PARENT, one.notches[0], random.Random(1))
    others = [
        (other.name, other.apply(PARENT, other.notches[0], random.Random(1)).child)
        for other in WRAPPERS
        if other is not one
    ]
    answer = judged(mutation, *others)
    assert answer.status is GateStatus.PASSED, answer.reason
    assert dict(answer.figures)["added"] > 0


def test_a_child_that_is_its_parent_is_refused() -> None:
    mutation = replace(child("size_budget"), child=PARENT.bundle)
    assert "nothing but configuration" in judged(mutation).reason


def test_other_numbers_case_and_white_space_make_nothing_new() -> None:
    text = PARENT.bundle.instruction.upper().replace("\n", "\n\n")
    solve = edited(PARENT.bundle, "solution/report.py", ("indent=2", "indent = 4"))
    bundle = PARENT.bundle.with_files([SandboxFile("instruction.md", text.encode()), solve])
    answer = judged(replace(child("size_budget"), child=bundle))
    assert answer.status is GateStatus.FAILED
    assert "numbers, case and white space" in answer.reason


def test_another_world_for_the_same_work_is_something_new() -> None:
    data = PARENT.bundle.by_path["environment/data/orders.csv"].data
    bundle = PARENT.bundle.with_files([SandboxFile("environment/data/old.csv", data[:200])])
    assert judged(replace(child("size_budget"), child=bundle)).status is GateStatus.PASSED


def test_a_sibling_by_the_same_operator_with_other_numbers_is_a_near_duplicate() -> None:
    one, two = child("size_budget", 1), child("size_budget", 2).child
    text = two.instruction.replace("must", "must ", 1)
    again = two.with_files([SandboxFile("instruction.md", f"{text}\nThank you.\n".encode())])
    answer = judged(one, ("a sibling", again))
    assert answer.status is GateStatus.FAILED
    assert "near-duplicate of a sibling" in answer.reason


def test_the_same_files_under_another_name_are_named() -> None:
    mutation = child("size_budget")
    assert judged(mutation, ("an old one", mutation.child)).reason == "the same files as an old one"


def test_a_copy_with_other_figures_is_found_in_a_set() -> None:
    copied = {
        path: re.sub(rb"\d+", lambda m: str(int(m[0]) % 977 + 3).encode(), file.data)
        for path, file in seed("permission-audit").by_path.items()
        if path.startswith(("tests/", "solution/", "instruction"))
    }
    files = [SandboxFile(path, data, 0o755) for path, data in copied.items()]
    twin = seed("permission-audit").with_files(files)
    others = [(slug, seed(slug)) for slug in SLUGS]
    answer = alone(twin, *others)
    assert answer.status is GateStatus.FAILED
    assert "near-duplicate of permission-audit" in answer.reason


def test_the_same_work_on_other_data_is_a_near_duplicate() -> None:
    words = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(400))
    expected = SandboxFile("tests/expected.csv", words.encode())
    twin = orders(SandboxFile("tests/expected.csv", words[::-1].encode()))
    answer = alone(orders(expected), ("its twin", twin))
    assert answer.status is GateStatus.FAILED
    assert "near-duplicate of its twin: 100%" in answer.reason


SLUGS = sorted(path.name for path in SEEDS.iterdir() if path.is_dir())


@pytest.mark.parametrize("slug", SLUGS)
def test_every_bundled_seed_is_unlike_the_others(slug: str) -> None:
    answer = alone(seed(slug), *((other, seed(other)) for other in SLUGS if other != slug))
    assert answer.status is GateStatus.PASSED, answer.reason


def test_without_a_relative_there_is_nothing_to_compare() -> None:
    assert alone(orders()).status is GateStatus.NOT_APPLICABLE
