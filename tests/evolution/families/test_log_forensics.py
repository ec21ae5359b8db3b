"""The family renders whole environments whose genes are demands of their own."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from evolution.contracts import Subject
from evolution.directions import Effect
from evolution.families.gene_operator import GeneOperator
from evolution.families.log_forensics import render
from evolution.families.operators import OPERATORS
from evolution.operators.base import facts
from evolution.operators.registry import operator
from evolution.sequence import apply_edit
from sandbox.contracts import SandboxFile, SolverEnd
from sandbox.trial import Runner
from tests.evolution.operators.subjects import (
    after,
    attempt,
    child_of,
    observed,
    passed,
    seed,
    small,
    without,
)
from tests.evolution.real_sandbox import subject_of

SEED = "auth-log-forensics"
NONE = dict.fromkeys(render.GENES, 0)


def as_observed() -> Subject:
    """The seed, as if its oracle had been run."""
    oracle = small().oracle
    assert oracle is not None
    result = replace(oracle.result, checks=passed(("line_count", "attackers", "breaches")))
    return replace(subject_of(seed(SEED)), oracle=replace(oracle, result=result))


def test_the_bundled_seed_is_the_family_with_all_genes_at_0() -> None:
    assert seed(SEED) == render.render(NONE)


def test_every_gene_has_an_operator_and_a_check_of_its_own() -> None:
    assert [one.gene.name for one in OPERATORS] == list(render.GENES)
    assert len({render.check_of(gene) for gene in render.GENES}) == len(render.GENES)


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] * (one.gene.name == "volume"))
        for one in OPERATORS
    ],
)
def test_a_gene_changes_data_tests_and_instruction_together(one: GeneOperator) -> None:
    parent = as_observed()
    assert one.applies_to(parent) is None
    mutation = one.apply(parent, 1, random.Random(1))
    child = mutation.child
    own = child.config["metadata"]["ratchet"]
    assert own["genes"] == {**NONE, one.gene.name: 1}
    assert own["parent"] == parent.bundle.digest
    assert apply_edit(parent.sequence, mutation.edit) == mutation.sequence
    for folder in ("environment", "solution", "tests"):
        assert child.folder(folder) != parent.bundle.folder(folder), folder
    assert child.instruction != parent.bundle.instruction
    assert mutation.control.folder("environment") == parent.bundle.folder("environment")
    assert one.apply(parent, 1, random.Random(2)).child == child


def test_genes_come_before_wrappers() -> None:
    parent = as_observed()
    wrapped = after(
        parent, operator("collateral_guard").apply(guardable(parent), 1, random.Random(1))
    )
    reason = operator("log_forensics_noise").applies_to(wrapped)
    assert reason == "collateral_guard is there already: genes are mutated before any wrapper"


def guardable(subject: Subject) -> Subject:
    """The subject with its oracle's trace naming what it read."""
    assert subject.oracle is not None
    assert subject.oracle.result.trace is not None
    read = ("/app/data/auth/db1.log", "/app/data/policy.ini")
    trace = replace(subject.oracle.result.trace, read=read)
    return replace(
        subject, oracle=replace(subject.oracle, result=replace(subject.oracle.result, trace=trace))
    )


def test_a_gene_is_refused_twice_elsewhere_and_on_changed_files() -> None:
    parent = as_observed()
    one = operator("log_forensics_leases")
    child = after(parent, one.apply(parent, 1, random.Random(1)))
    assert "already met" in (one.applies_to(child) or "")
    assert "not of the family" in (one.applies_to(small()) or "")
    edited = parent.bundle.with_files([SandboxFile("solution/report.py", b"pass\n")])
    assert "not those" in (one.applies_to(replace(parent, bundle=edited)) or "")


def test_a_wrapper_keeps_the_instruction_of_the_genes() -> None:
    parent = as_observed()
    child = after(parent, operator("log_forensics_clocks").apply(parent, 2, random.Random(1)))
    mutation = operator("collateral_guard").apply(guardable(child), 1, random.Random(1))
    text = mutation.child.instruction
    assert "some clocks show an hour twice" in " ".join(text.split())
    assert "`timeline.csv` lists all break-ins" not in text
    assert text.count("Conditions that the result must meet:") == 1


def test_notches_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="no such genes"):
        render.render({**NONE, "clocks": 9})


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("one", OPERATORS, ids=lambda one: one.name)
def test_a_gene_bites_and_only_it(runner: Runner, one: GeneOperator) -> None:
    parent = observed(runner, subject_of(seed(SEED)))
    for notch in one.notches:
        mutation = one.apply(parent, notch, random.Random(1))
        child, demand = mutation.child, mutation.demand
        full = attempt(runner, child, child.folder("solution"))
        assert full.is_passed, [check for check in full.checks if not check.is_passed]
        naive = attempt(runner, child, mutation.naive)
        assert set(demand.checks) <= naive.failed_checks <= {*demand.checks, *demand.premise}
        assert attempt(runner, mutation.control, child.folder("solution")).is_passed
        assert attempt(runner, mutation.control, mutation.naive).is_passed
        assert not attempt(runner, child, parent.bundle.folder("solution")).is_passed
        if demand.effect is Effect.BUDGET:
            (limit,) = facts(demand, "budget_limit")
            assert naive.solver_end is SolverEnd.OUT_OF_MEMORY
            assert full.usage.peak_memory_bytes is not None
            assert full.usage.peak_memory_bytes <= 0.7 * int(limit)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_genes_and_wrappers_stack_and_all_bite(runner: Runner) -> None:
    subject = observed(runner, subject_of(seed(SEED)))
    names = ("log_forensics_noise", "log_forensics_clocks", "log_forensics_leases")
    for name in (*names, "damaged_mirrors", "evidence_manifest"):
        one = operator(name)
        assert one.applies_to(subject) is None, (name, one.applies_to(subject))
        subject = child_of(runner, subject, one.apply(subject, one.notches[-1], random.Random(3)))
    idle = [
        demand.id
        for demand in subject.demands
        if attempt(runner, subject.bundle, without(subject.bundle, demand)).is_passed
    ]
    assert idle == []
