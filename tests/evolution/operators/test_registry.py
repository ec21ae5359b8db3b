"""Operators cover the grid, are deterministic, and refuse by name."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from evolution.contracts import Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.operators.base import Kind, Operator, facts
from evolution.operators.inputs import inputs
from evolution.operators.registry import OPERATORS, operator
from evolution.sequence import apply_edit
from sandbox.contracts import SandboxFile, Trace
from tests.evolution.operators.subjects import INPUT, after, small
from tests.evolution.real_sandbox import DOCKERFILE, ORDERS, orders

ROOT = Path(__file__).parents[3]
WRAPPERS = tuple(one for one in OPERATORS if one.kind is Kind.WRAPPER)
RESTORING = ("foreign_encoding", "damaged_mirrors", "stale_copies", "flaky_source")
DIGESTS = """
import random
from evolution.operators.registry import OPERATORS
from tests.evolution.operators.subjects import small
for one in OPERATORS:
    if one.applies_to(small()) is None:
        for notch in one.notches:
            mutation = one.apply(small(), notch, random.Random(notch))
            print(one.name, notch, mutation.child.digest, mutation.control.digest)
"""


def names(operators: Iterable[Operator]) -> list[str]:
    return [one.name for one in operators]


def test_every_cell_and_every_effect_has_an_operator() -> None:
    cells = {(one.direction, one.aspect) for one in OPERATORS}
    assert cells == {(direction, aspect) for direction in Direction for aspect in Aspect}
    assert {one.effect for one in OPERATORS} == set(Effect)
    assert {one.kind for one in OPERATORS} == set(Kind)


def test_names_are_unique_and_can_be_looked_up() -> None:
    assert len(set(names(OPERATORS))) == len(OPERATORS)
    assert all(operator(one.name) is one for one in OPERATORS)


@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_a_wrapper_is_used_once_in_a_lineage(one: Operator) -> None:
    child = after(small(), one.apply(small(), 1, random.Random(1)))
    assert "already met" in (one.applies_to(child) or "")
    with pytest.raises(ValueError, match="already met"):
        one.apply(child, 1, random.Random(1))


@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_the_parts_of_a_mutation_fit_together(one: Operator) -> None:
    parent = small()
    for notch in one.notches:
        mutation = one.apply(parent, notch, random.Random(notch))
        child, demand = mutation.child, mutation.demand
        assert apply_edit(parent.sequence, mutation.edit) == mutation.sequence
        assert (demand.direction, demand.aspect, demand.effect) == (
            one.direction,
            one.aspect,
            one.effect,
        )
        assert all(path in child.by_path for path in mutation.adaptation)
        assert mutation.naive != child.folder("solution")
        assert demand.omit
        assert all(edit.path.startswith("solution/steps/") for edit in demand.omit)
        assert all(check.startswith(f"{one.name}.") for check in demand.checks)
        declared = child.config["artifacts"]
        assert all(path in declared for path in facts(demand, "artifact"))
        own = child.config["metadata"]["ratchet"]
        assert own["generation"] == 1
        assert own["parent"] == own["root"] == parent.bundle.digest
        assert own["operators"] == [one.name]
        assert demand.statement.requirement
        assert child.instruction != parent.bundle.instruction


def test_the_same_input_gives_the_same_child_in_any_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(number), "TZ": zone},
            cwd=cwd,
            check=True,
            capture_output=True,
        ).stdout
        for number, zone, cwd in ((1, "UTC", ROOT), (2, "Asia/Kolkata", "/"))
    }
    assert len(found) == 1
    assert len(found.pop().splitlines()) == sum(len(one.notches) for one in WRAPPERS)


def test_the_order_and_noise_of_a_trace_do_not_matter() -> None:
    parent = small()
    assert parent.oracle is not None
    trace = parent.oracle.result.trace
    assert trace is not None
    noisy = replace(trace, read=("/tmp/xyz", *trace.read), programs=("awk",), note="slow")
    result = replace(parent.oracle.result, trace=noisy, seconds=3.0)
    other = replace(parent, oracle=replace(parent.oracle, result=result))
    for one in WRAPPERS:
        mine = one.apply(parent, 1, random.Random(4)).child
        assert one.apply(other, 1, random.Random(4)).child == mine


@pytest.mark.parametrize("name", RESTORING)
def test_a_hidden_input_is_nowhere_in_the_environment(name: str) -> None:
    for notch in operator(name).notches:
        mutation = operator(name).apply(small(), notch, random.Random(notch))
        environment = mutation.child.folder("environment")
        assert "data/orders.csv" not in {file.path for file in environment}
        if name != "stale_copies":  # there the right copy lies among wrong ones
            assert all(ORDERS.encode() not in file.data for file in environment)
        assert mutation.control.by_path["environment/data/orders.csv"].data == ORDERS.encode()


def test_no_literal_that_is_withheld_is_in_the_solution_or_the_instruction() -> None:
    for notch in operator("stale_copies").notches:
        mutation = operator("stale_copies").apply(small(), notch, random.Random(notch))
        (withheld,) = mutation.withheld
        solution = b"".join(file.data for file in mutation.child.folder("solution"))
        assert withheld.encode() not in solution
        assert withheld not in mutation.child.instruction
        assert withheld not in mutation.discovery


def test_the_sealed_order_is_not_readable() -> None:
    mutation = operator("sealed_followup").apply(small(), 2, random.Random(2))
    order = b"".join(file.data for file in mutation.child.folder("environment/sealed"))
    assert b"columns" not in order
    assert mutation.demand.statement.requirement not in order.decode()


def changed(*files: SandboxFile, without: tuple[str, ...] = ()) -> Subject:
    parent = small()
    bundle = orders(*files, without=without)
    return replace(parent, bundle=bundle, root_instruction=bundle.instruction)


def image(*lines: str) -> SandboxFile:
    return SandboxFile("environment/Dockerfile", (DOCKERFILE + "\n".join(lines) + "\n").encode())


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (changed(image("USER nobody")), "not root"),
        (changed(image("RUN python3 /app/data/make.py")), "while it is built"),
        (changed(SandboxFile("environment/copy.csv", ORDERS.encode())), "no input file"),
        (changed(SandboxFile("environment/data/orders.csv", b"a,b\n" * 3)), "no input file"),
        (changed(SandboxFile("environment/docker-compose.yaml", b"")), "several containers"),
        (changed(without=("environment/Dockerfile",)), "python3"),
    ],
)
def test_an_input_that_cannot_be_hidden_is_refused_by_name(subject: Subject, reason: str) -> None:
    for name in RESTORING:
        assert reason in (operator(name).applies_to(subject) or ""), name


def test_inputs_that_the_oracle_did_not_read_are_left_alone() -> None:
    parent = small()
    assert parent.oracle is not None
    assert parent.oracle.result.trace is not None
    trace = replace(parent.oracle.result.trace, read=())
    result = replace(parent.oracle.result, trace=trace)
    unread = replace(parent, oracle=replace(parent.oracle, result=result))
    assert "no input file" in (operator("damaged_mirrors").applies_to(unread) or "")


def test_binary_inputs_are_no_foreign_text() -> None:
    data = ORDERS.replace("\n", "\r\n").encode()
    subject = changed(SandboxFile("environment/data/orders.csv", data))
    assert "fitting kind" in (operator("foreign_encoding").applies_to(subject) or "")
    assert operator("damaged_mirrors").applies_to(subject) is None


def test_one_input_is_hidden_once() -> None:
    child = after(small(), operator("damaged_mirrors").apply(small(), 1, random.Random(1)))
    assert "no input file" in (operator("flaky_source").applies_to(child) or "")
    (hidden,) = facts(child.demands[0], "input")
    assert hidden == INPUT


def test_unknown_results_carry_no_further_work() -> None:
    parent = small()
    assert parent.oracle is not None
    blind = replace(parent.oracle, result=replace(parent.oracle.result, state=None))
    subject = replace(parent, oracle=blind)
    for name in ("size_budget", "evidence_manifest", "sealed_followup"):
        assert "not known" in (operator(name).applies_to(subject) or "")


def test_inputs_among_the_results_cannot_be_guarded() -> None:
    parent = small()
    text = parent.bundle.text("task.toml").replace('["/app/out"]', '["/app/out", "/app/data"]')
    bundle = parent.bundle.with_files([SandboxFile("task.toml", text.encode())])
    reason = operator("collateral_guard").applies_to(replace(parent, bundle=bundle))
    assert "no folder of their own" in (reason or "")


def test_a_trace_that_saw_nothing_is_as_good_as_none() -> None:
    parent = small()
    assert parent.oracle is not None
    blind = Trace(written=("/app/out/report.json",), is_complete=False, note="deaf")
    unseen = [
        replace(
            parent, oracle=replace(parent.oracle, result=replace(parent.oracle.result, trace=t))
        )
        for t in (blind, None)
    ]
    for one in OPERATORS:
        reasons = [one.applies_to(subject) for subject in unseen]
        assert reasons[0] == reasons[1]
    assert [inputs(subject)[0].target for subject in unseen] == [INPUT] * 2
