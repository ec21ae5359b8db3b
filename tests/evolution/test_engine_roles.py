"""Plans are chosen by preference and seed, and judged by rules."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from evolution.contracts import Demand, GateResult, GateStatus, Plan, StepConfig, Verdict
from evolution.directions import Aspect, Direction
from evolution.roles import modifier, proposer
from evolution.roles.findings import finding, judged_operators
from evolution.roles.plan_reviewer import edit_size, review_plan
from evolution.roles.seeding import derived_seed
from evolution.sequence import EditKind, Pair
from tests.evolution.toy_world import MoreWords, toy_subject

CONFIG = StepConfig(seed=4)
TWO = (MoreWords("one", Direction.SKILL), MoreWords("two", Direction.SKILL))


def proposal(config: StepConfig = CONFIG, findings: tuple[str, ...] = ()) -> Plan | str:
    return proposer.propose(toy_subject(), Direction.SKILL, config, findings, TWO)


def plan() -> Plan:
    made = proposal()
    assert isinstance(made, Plan)
    return made


def demand_of(operator: MoreWords) -> Demand:
    return operator.apply(toy_subject(), 1, random.Random(0)).demand


def test_operators_that_siblings_have_come_last() -> None:
    for name, other in (("one", "two"), ("two", "one")):
        for seed in range(6):
            made = proposal(StepConfig(seed=seed, avoid=(name,)))
            assert isinstance(made, Plan)
            assert made.operator == other


def test_every_operator_is_drawn_by_some_seed() -> None:
    drawn = {made.operator for s in range(20) if isinstance(made := proposal(StepConfig(s)), Plan)}
    assert drawn == {"one", "two"}


def test_cells_that_the_lineage_has_not_used_come_first() -> None:
    other = MoreWords("fresh", Direction.SKILL)
    other.aspect = Aspect.RESOURCES  # type: ignore[misc]
    used = demand_of(MoreWords("used", Direction.SKILL))
    subject = replace(toy_subject(), demands=(used,))
    for seed in range(6):
        made = proposer.propose(
            subject, Direction.SKILL, StepConfig(seed), (), (MoreWords("n", Direction.SKILL), other)
        )
        assert isinstance(made, Plan)
        assert made.operator == "fresh"


def test_no_plan_is_one_line_that_names_every_reason() -> None:
    subject = replace(toy_subject(), demands=(demand_of(TWO[0]),))
    said = proposer.propose(subject, Direction.SKILL, CONFIG, ("two: failed",), TWO)
    assert said == "no operator fits (one: is already met; two was tried)"
    assert proposer.propose(subject, Direction.LENGTH, CONFIG, (), TWO) == (
        "no operator fits (none is known)"
    )


def test_a_sound_plan_is_accepted() -> None:
    assert review_plan(toy_subject(), plan(), TWO).is_accepted


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"operator": "three"}, "three: no operator has that name"),
        ({"direction": Direction.LENGTH}, "not to the planned cell"),
        ({"aspect": Aspect.DYNAMICS}, "not to the planned cell"),
        ({"notch": 9}, "has no notch 9 (1, 2, 3)"),
        ({"why": " "}, "does not say why it is harder"),
        ({"sequence": ()}, "not what the edit gives"),
    ],
)
def test_a_plan_that_breaks_a_rule_is_returned_with_the_reason(
    changes: dict[str, object], said: str
) -> None:
    review = review_plan(toy_subject(), replace(plan(), **changes), TWO)  # type: ignore[arg-type]
    assert not review.is_accepted
    assert any(said in line for line in review.findings)


def test_an_edit_of_another_direction_or_place_is_returned() -> None:
    good = plan()
    inserted = replace(good.edit, kind=EditKind.INSERT)
    review = review_plan(toy_subject(), replace(good, edit=inserted), TWO)
    assert any("is not in the direction skill" in line for line in review.findings)
    away = replace(good.edit, index=7)
    review = review_plan(toy_subject(), replace(good, edit=away), TWO)
    assert any("does not fit the sequence" in line for line in review.findings)


def test_a_demand_that_is_live_already_is_returned() -> None:
    subject = replace(toy_subject(), demands=(demand_of(TWO[0]),))
    review = review_plan(subject, replace(plan(), operator="one"), TWO)
    assert any("is a demand of this lineage already" in line for line in review.findings)


def test_the_size_of_an_edit_is_the_span_that_differs() -> None:
    a, b, c, x, y = (Pair(name, name) for name in "abcxy")
    assert edit_size((a, b, c), (a, b, c)) == 0
    assert edit_size((a, b, c), (a, x, c)) == 1
    assert edit_size((a, b, c), (a, x, b, c)) == 1
    assert edit_size((a, b, c), (x, b, y)) == 3
    assert edit_size((a, a), (a, a, a)) == 1


def verdict(gate: str) -> Verdict:
    return Verdict(GateStatus.FAILED, (GateResult(gate, 1, GateStatus.FAILED, "no"),))


@pytest.mark.parametrize(
    ("gate", "notch", "following"),
    [
        ("demand", 1, 2),
        ("demand", 3, None),
        ("parent_solution", 2, 3),
        ("headroom", 2, 1),
        ("oracle", 1, None),
        ("mutants", 2, None),
        ("nop", 2, None),
    ],
)
def test_the_notch_follows_the_evidence(gate: str, notch: int, following: int | None) -> None:
    assert modifier.next_notch((1, 2, 3), notch, verdict(gate)) == following


def test_findings_name_the_operators_they_judge() -> None:
    lines = (finding("one", "demand: no"), finding("two", "x"), "a line without a name")
    assert judged_operators(lines) == {"one", "two"}


def test_seeds_depend_on_every_part_and_on_where_it_ends() -> None:
    seeds = {derived_seed("a", "bc"), derived_seed("ab", "c"), derived_seed("a", "bc", 1)}
    assert len(seeds) == 3
    assert derived_seed("a", 1) == derived_seed("a", 1) < 2**56
