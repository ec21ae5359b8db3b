"""What every wrapper claims, seen in fresh sandboxes: its demand bites, alone and in a stack."""

from __future__ import annotations

import random

import pytest

from evolution.contracts import Mutation, Subject
from evolution.directions import Effect
from evolution.execution import trial_spec
from evolution.operators.base import Kind, Operator, facts
from evolution.operators.inputs import inputs
from evolution.operators.registry import OPERATORS, operator
from sandbox.contracts import SandboxFile, SolverSpec
from sandbox.trial import Runner
from tests.evolution.operators.subjects import attempt, child_of, observed, seed, without
from tests.evolution.real_sandbox import orders, subject_of

pytestmark = pytest.mark.bubblewrap

WRAPPERS = tuple(one for one in OPERATORS if one.kind is Kind.WRAPPER)
STACK = (
    "damaged_mirrors",
    "evidence_manifest",
    "collateral_guard",
    "stale_copies",
    "sealed_followup",
    "size_budget",
    "flaky_source",
)


@pytest.fixture(scope="module")
def parents(runner: Runner) -> dict[str, Subject]:
    """Environments with their oracle's observed run."""
    seeds = {slug: subject_of(seed(slug)) for slug in ("permission-audit", "nginx-log-forensics")}
    return {
        slug: observed(runner, subject)
        for slug, subject in {**seeds, "orders": subject_of(orders())}.items()
    }


def prove(runner: Runner, parent: Subject, mutation: Mutation) -> None:
    """The cells of the effect class, and that nothing done is nothing earned."""
    child, demand = mutation.child, mutation.demand
    full = attempt(runner, child, child.folder("solution"))
    assert full.is_passed, [check for check in full.checks if not check.is_passed]
    assert set(demand.checks) <= {check.name for check in full.checks}
    naive = attempt(runner, child, mutation.naive)
    assert naive.failed_checks & set(demand.checks), naive.failed_checks
    assert naive.failed_checks <= {*demand.checks, *demand.premise}
    assert attempt(runner, child, without(child, demand)).failed_checks == naive.failed_checks
    assert attempt(runner, mutation.control, child.folder("solution")).is_passed
    if demand.effect is Effect.VERIFIER:
        assert attempt(runner, parent.bundle, mutation.wrong).is_passed
        assert attempt(runner, child, mutation.wrong).failed_checks == set(demand.checks)
    else:
        assert attempt(runner, mutation.control, mutation.naive).is_passed
    assert not attempt(runner, child, None).is_passed
    if demand.effect is Effect.BUDGET:
        sizes = {file.path: len(file.data) for file in full.state or ()}
        (path,), (limit,) = facts(demand, "budget_path"), facts(demand, "budget_limit")
        assert sizes[path] <= 0.7 * int(limit)


@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_a_demand_bites_and_only_it(
    runner: Runner, parents: dict[str, Subject], one: Operator
) -> None:
    parent, notch = parents["orders"], one.notches[-1]
    assert one.applies_to(parent) is None
    prove(runner, parent, one.apply(parent, notch, random.Random(notch)))


@pytest.mark.slow
@pytest.mark.parametrize("slug", ["permission-audit", "nginx-log-forensics"])
@pytest.mark.parametrize("one", WRAPPERS, ids=lambda one: one.name)
def test_a_demand_bites_on_bundled_seeds(
    runner: Runner, parents: dict[str, Subject], one: Operator, slug: str
) -> None:
    parent = parents[slug]
    assert one.applies_to(parent) is None
    notch = one.notches[0] if slug == "permission-audit" else one.notches[-1]
    prove(runner, parent, one.apply(parent, notch, random.Random(notch)))


def test_withheld_facts_are_found_out_inside_and_the_decoy_fails(
    runner: Runner, parents: dict[str, Subject]
) -> None:
    for notch in (1, 3):
        mutation = operator("stale_copies").apply(parents["orders"], notch, random.Random(notch))
        decoy = attempt(runner, mutation.child, mutation.decoy)
        assert decoy.failed_checks & set(mutation.demand.checks)
        result = runner.run(
            trial_spec(mutation.child, SolverSpec("discovery", command=mutation.discovery))
        )
        assert result.solver_output.decode().split() == list(mutation.withheld)


@pytest.mark.slow
def test_every_demand_of_a_stack_bites(runner: Runner, parents: dict[str, Subject]) -> None:
    subject = parents["nginx-log-forensics"]
    for name in STACK:
        one = operator(name)
        assert one.applies_to(subject) is None, (name, one.applies_to(subject))
        mutation = one.apply(subject, one.notches[-1], random.Random(7))
        subject = child_of(runner, subject, mutation)
    assert len(subject.demands) == len(STACK)
    assert len({path for d in subject.demands for path in facts(d, "input")}) == 3
    idle = [
        demand.id
        for demand in subject.demands
        if attempt(runner, subject.bundle, without(subject.bundle, demand)).is_passed
    ]
    assert idle == []


def test_a_sealed_order_of_every_kind_is_carried_out(
    runner: Runner, parents: dict[str, Subject]
) -> None:
    found = set()
    for number in range(12):
        mutation = operator("sealed_followup").apply(
            parents["orders"], 1 + number % 2, random.Random(number)
        )
        skill = mutation.sequence[-1].skill
        if skill not in found:
            result = attempt(runner, mutation.child, mutation.child.folder("solution"))
            assert result.is_passed, (number, result.solver_output[-500:])
        found.add(skill)
    assert len(found) == 3


def test_a_guarded_input_may_not_vanish_either(runner: Runner, parents: dict[str, Subject]) -> None:
    parent = parents["nginx-log-forensics"]
    mutation = operator("collateral_guard").apply(parent, 1, random.Random(1))
    gone = inputs(parent)[0].target
    tidy = f"#!/bin/bash\nrm {gone}\n".encode()
    child = mutation.child
    untidy = child.with_files([SandboxFile("solution/steps/98-tidy.sh", tidy, 0o755)])
    result = attempt(runner, child, untidy.folder("solution"))
    assert result.failed_checks == set(mutation.demand.checks)
