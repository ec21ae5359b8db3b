"""One step: the two loops, the repairs, the fallback; in a world without sandboxes."""

from __future__ import annotations

from dataclasses import replace

from evolution.authors.procedural import ProceduralAuthor
from evolution.contracts import GateStatus, PlanReview, StepConfig, StepEnd
from evolution.directions import Direction
from evolution.engine import direction_order, evolve_step
from evolution.gates.case import child_subject
from evolution.memory import MemoryJournal
from sandbox.contracts import Outcome
from tests.evolution.toy_world import MoreWords, ToyRunner, three_operators, toy_subject

CONFIG = StepConfig(seed=3)


def author(**works_from: int) -> ProceduralAuthor:
    return ProceduralAuthor(three_operators(**works_from))


def test_a_step_gives_a_proved_child() -> None:
    journal = MemoryJournal()
    result = evolve_step(toy_subject(), author(), ToyRunner(), journal, CONFIG)
    assert result.end is StepEnd.ACCEPTED
    assert result.accepted is not None
    verdict = result.accepted.verdict
    assert {gate.status for gate in verdict.gates} == {GateStatus.PASSED}
    assert dict(verdict.gates[-1].figures)["judged"] >= 20
    assert journal.attempts == list(result.attempts)


def test_the_same_inputs_give_the_same_child_and_another_seed_another() -> None:
    def digest(seed: int) -> str:
        config = StepConfig(seed=seed)
        step = evolve_step(toy_subject(), author(), ToyRunner(), MemoryJournal(), config)
        assert step.accepted is not None
        return step.accepted.mutation.child.digest

    assert digest(1) == digest(1)
    assert len({digest(seed) for seed in range(8)}) > 1


def test_directions_come_in_a_drawn_order_or_as_configured() -> None:
    subject = toy_subject()
    orders = {direction_order(subject, StepConfig(seed=seed)) for seed in range(40)}
    assert len(orders) == 6
    fixed = StepConfig(seed=1, directions=(Direction.LENGTH,))
    assert direction_order(subject, fixed) == (Direction.LENGTH,)


def test_a_demand_that_does_not_bite_is_repaired_by_a_higher_notch() -> None:
    config = StepConfig(seed=3, directions=(Direction.SKILL,), max_repairs=3)
    result = evolve_step(toy_subject(), author(skill=3), ToyRunner(), MemoryJournal(), config)
    assert result.end is StepEnd.ACCEPTED
    notches = [attempt.plan.notch for attempt in result.attempts]
    assert notches == list(range(notches[0], 4))
    assert all(attempt.verdict.failed[0].gate == "demand" for attempt in result.attempts[:-1])


def test_another_operator_of_the_direction_is_tried_before_another_direction() -> None:
    operators = (
        MoreWords("hopeless", Direction.SKILL, works_from=9),
        MoreWords("helpful", Direction.SKILL),
    )
    config = StepConfig(seed=0, directions=(Direction.SKILL,), avoid=("helpful",), max_repairs=4)
    result = evolve_step(
        toy_subject(), ProceduralAuthor(operators), ToyRunner(), MemoryJournal(), config
    )
    assert [attempt.plan.operator for attempt in result.attempts][-1] == "helpful"
    assert result.attempts[0].plan.operator == "hopeless"
    assert result.end is StepEnd.ACCEPTED


def test_the_next_direction_is_tried_when_one_fails() -> None:
    directions = (Direction.SCENARIO, Direction.LENGTH)
    config = StepConfig(seed=1, directions=directions, max_repairs=1)
    result = evolve_step(toy_subject(), author(scenario=9), ToyRunner(), MemoryJournal(), config)
    assert result.accepted is not None
    assert result.accepted.plan.direction is Direction.LENGTH
    assert result.refusals[0].startswith("scenario: scenario: ")


def test_a_step_fails_only_when_all_directions_have() -> None:
    hopeless = author(scenario=9, skill=9, length=9)
    result = evolve_step(toy_subject(), hopeless, ToyRunner(), MemoryJournal(), CONFIG)
    assert result.end is StepEnd.EXHAUSTED
    assert result.accepted is None
    assert {attempt.plan.direction for attempt in result.attempts} == set(Direction)


def test_the_budget_of_repairs_bounds_what_is_built() -> None:
    config = StepConfig(seed=1, directions=(Direction.SKILL,), max_repairs=1)
    result = evolve_step(toy_subject(), author(skill=9), ToyRunner(), MemoryJournal(), config)
    assert len(result.attempts) <= 2
    assert result.end is StepEnd.EXHAUSTED


def test_broken_machinery_ends_a_step_without_a_verdict_of_invalid() -> None:
    journal = MemoryJournal()
    result = evolve_step(toy_subject(), author(), ToyRunner({"solution": 99}), journal, CONFIG)
    assert result.end is StepEnd.INCONCLUSIVE
    assert result.attempts[-1].verdict.status is GateStatus.INCONCLUSIVE
    assert result.attempts[-1].verdict.failed == ()


def test_an_interrupted_step_goes_on_where_it_was_and_gives_the_same_child() -> None:
    journal = MemoryJournal()
    evolve_step(toy_subject(), author(), ToyRunner({"solution": 99}), journal, CONFIG)
    resumed = ToyRunner()
    result = evolve_step(toy_subject(), author(), resumed, journal, CONFIG)
    fresh = ToyRunner()
    expected = evolve_step(toy_subject(), author(), fresh, MemoryJournal(), CONFIG)
    assert result.accepted is not None
    assert expected.accepted is not None
    assert result.accepted.mutation.child == expected.accepted.mutation.child
    names = {spec.solver.name for spec in resumed.trials}
    assert not names & {"oracle", "nop"}
    assert len(resumed.trials) < len(fresh.trials)


def test_a_parent_whose_oracle_fails_has_no_children() -> None:
    runner = ToyRunner(verdicts={"oracle": Outcome.FAIL})
    result = evolve_step(toy_subject(), author(), runner, MemoryJournal(), CONFIG)
    assert result.end is StepEnd.EXHAUSTED
    assert result.attempts == ()
    assert result.refusals[0].startswith("parent: the reference solution earns 0")


def test_a_parent_that_cannot_be_observed_is_inconclusive() -> None:
    result = evolve_step(
        toy_subject(), author(), ToyRunner({"oracle": 99}), MemoryJournal(), CONFIG
    )
    assert result.end is StepEnd.INCONCLUSIVE


def test_a_plan_that_is_returned_is_revised() -> None:
    class Strict(ProceduralAuthor):
        reviews = 0

        def review_plan(self, subject, plan):  # type: ignore[no-untyped-def]
            self.reviews += 1
            if self.reviews == 1:
                return PlanReview(False, (f"{plan.operator}: not this one",))
            return super().review_plan(subject, plan)

    operators = (MoreWords("one", Direction.SKILL), MoreWords("two", Direction.SKILL))
    strict = Strict(operators)
    config = StepConfig(seed=1, directions=(Direction.SKILL,))
    journal = MemoryJournal()
    result = evolve_step(toy_subject(), strict, ToyRunner(), journal, config)
    assert result.accepted is not None
    returned = [text for kind, text in journal.events if kind == "plan_returned"]
    assert len(returned) == 1
    assert not returned[0].startswith(result.accepted.plan.operator)


def test_three_generations_keep_every_demand_alive() -> None:
    subject, journal = toy_subject(), MemoryJournal()
    for generation in range(1, 4):
        result = evolve_step(
            subject, author(), ToyRunner(), journal, replace(CONFIG, seed=generation)
        )
        assert result.accepted is not None
        mutation = result.accepted.mutation
        figures = dict(
            next(g for g in result.accepted.verdict.gates if g.gate == "demands").figures
        )
        assert figures == {"bite": generation, "total": generation}
        subject = child_subject(subject, mutation)
        journal = MemoryJournal(parent=journal.logs[mutation.child.digest])
    assert {demand.operator for demand in subject.demands} == {d.value for d in Direction}


def test_no_trial_is_run_twice_in_one_verification() -> None:
    runner = ToyRunner()
    result = evolve_step(toy_subject(), author(), runner, MemoryJournal(), CONFIG)
    assert result.end is StepEnd.ACCEPTED
    keys = [spec.key for spec in runner.trials if spec.solver.name not in ("oracle", "nop")]
    assert len(keys) == len(set(keys))
    assert sum(spec.solver.name == "nop" for spec in runner.trials) == CONFIG.nop_runs
