"""Environments in the manner of public ones are verified and evolved on their real images."""

from __future__ import annotations

import pytest

from evolution import execution
from evolution.authors.procedural import ProceduralAuthor
from evolution.bundle import Bundle
from evolution.composition import composing_refusal
from evolution.contracts import StepConfig, StepEnd, StepResult, Subject
from evolution.directions import Direction
from evolution.engine import evolve_step
from evolution.memory import MemoryJournal
from evolution.sequence import assumed_sequence
from sandbox.contracts import NetworkMode, Outcome, TrialResult
from sandbox.trial import Runner
from tests.foreign.public_style import FETCH_BY_PIP, greeting, stock

pytestmark = [pytest.mark.docker, pytest.mark.slow]
BUNDLES = {
    "uv, with Python in the image": stock(),
    "pip": stock(test=FETCH_BY_PIP),
    "uv, without Python in the image": greeting(),
}


def subject_of(bundle: Bundle) -> Subject:
    sequence = assumed_sequence(bundle.config)
    return Subject(bundle, sequence, (), bundle.instruction, generation=0)


def evolved(
    bundle: Bundle, runner: Runner, direction: Direction
) -> tuple[StepResult, MemoryJournal]:
    journal = MemoryJournal()
    config = StepConfig(seed=3, oracle_runs=1, nop_runs=1, mutant_count=12, directions=(direction,))
    return evolve_step(subject_of(bundle), ProceduralAuthor(), runner, journal, config), journal


def results(journal: MemoryJournal) -> list[TrialResult]:
    return [result for log in journal.logs.values() for result in log.results.values()]


@pytest.mark.parametrize("bundle", BUNDLES.values(), ids=BUNDLES)
def test_its_own_solution_passes_and_doing_nothing_fails(
    bundle: Bundle, docker_runner: Runner
) -> None:
    assert execution.network(bundle).mode is NetworkMode.PUBLIC
    solved = docker_runner.run(execution.trial_spec(bundle, execution.oracle(bundle)))
    idle = docker_runner.run(execution.trial_spec(bundle, execution.nop(bundle)))
    assert solved.outcome is Outcome.PASS, solved
    assert idle.outcome is Outcome.FAIL, idle
    assert solved.toolchain.startswith("pytest 8.4.1 on the ")
    assert {check.name for check in solved.checks} == {check.name for check in idle.checks}
    assert solved.checks


def test_a_child_is_judged_in_a_clean_sandbox(docker_runner: Runner) -> None:
    parent = stock()
    step, journal = evolved(parent, docker_runner, Direction.SCENARIO)
    assert step.end is StepEnd.ACCEPTED, (step.refusals, journal.events)
    child = step.attempts[-1].mutation.child
    assert child.config["verifier"]["environment_mode"] == "separate"
    assert "/app/report" in child.config["artifacts"]
    assert child.config["metadata"]["ratchet"]["parent"] == parent.digest
    assert child.by_path["tests/base_test.sh"].data == parent.by_path["tests/test.sh"].data
    assert execution.verifier_spec(child).toolchain == execution.verifier_spec(parent).toolchain
    judged = [result.toolchain for result in results(journal) if result.checks]
    assert judged
    assert all(said.startswith("pytest 8.4.1 on the toolchain's Python") for said in judged)


def test_what_cannot_be_composed_says_why(docker_runner: Runner) -> None:
    step, _ = evolved(greeting(), docker_runner, Direction.LENGTH)
    assert step.end is StepEnd.EXHAUSTED
    assert composing_refusal(greeting()) == "its image has no python3, which the added checks need"
    assert "its image has no python3" in step.refusals[-1]
