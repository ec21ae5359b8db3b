"""A repair that leaves the bundle as it is, and changes what is tried on it, is judged anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from evolution.authors.procedural import ProceduralAuthor
from evolution.contracts import Mutation, Plan, StepEnd, Subject, Verdict
from evolution.directions import Direction
from evolution.llm.calls import CallLog
from evolution.ports import Author
from tests.evolution.toy_world import MoreWords, ToyRunner
from tests.webapp.rows import make_run
from webapp.adapters import work
from webapp.lifecycle import RunStatus, VerificationStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, Trial
from webapp.services import environments, runs, verifications

pytestmark = pytest.mark.django_db


class Forgetful(ProceduralAuthor):
    """Hands over the whole solution as the wrong one, and on repair something else, or not."""

    def __init__(self, *, is_sorry: bool) -> None:
        super().__init__((MoreWords("word", Direction.LENGTH),))
        self.is_sorry = is_sorry

    def modify(self, subject: Subject, plan: Plan, evidence: Verdict | None) -> Mutation | str:
        """The same child each time."""
        made = super().modify(subject, plan, None)
        assert isinstance(made, Mutation)
        if evidence is not None and self.is_sorry:
            return made
        return replace(made, naive=made.child.folder("solution"))


@pytest.fixture
def step(toy_seed: Environment) -> EvolutionStep:
    """A step of a run over a verified seed."""
    run = make_run(toy_seed, generations=1)
    run.directions = [Direction.LENGTH.value]
    run.save(update_fields=["directions"])
    runs.advance_run(run)
    return EvolutionStep.objects.get(run=run)


def worked(step: EvolutionStep, *, is_sorry: bool) -> Environment:
    """The step's only candidate, after the step."""

    @contextmanager
    def author_for(_: EvolutionStep, __: CallLog) -> Iterator[Author]:
        yield Forgetful(is_sorry=is_sorry)

    assert work.work_on_step(step.pk, lambda _: ToyRunner(), author_for, "tests")
    step.refresh_from_db()
    return Environment.objects.get(step=step)


def test_another_wrong_solution_for_the_same_bundle_is_judged_anew(step: EvolutionStep) -> None:
    child = worked(step, is_sorry=True)
    assert step.end == StepEnd.ACCEPTED, step.refusals
    assert step.child == child
    first, second = child.verifications.order_by("number")
    assert (first.verdict, second.verdict) == ("failed", "passed")
    assert child.current_verification == second
    assert first.parts_digest != second.parts_digest == child.parts_digest
    proof = environments.load_mutation(child)
    assert proof is not None
    assert proof.naive != proof.child.folder("solution")
    assert verifications.open_verification(child).parts_digest == child.parts_digest


def test_a_step_that_begins_again_finds_each_verdict_with_its_proof(step: EvolutionStep) -> None:
    worked(step, is_sorry=True)
    trials = Trial.objects.count()
    EvolutionStep.objects.filter(pk=step.pk).update(status=RunStatus.QUEUED, child=None, end="")
    EvolutionRun.objects.update(status=RunStatus.RUNNING)
    child = worked(step, is_sorry=True)
    assert step.end == StepEnd.ACCEPTED, step.refusals
    assert child.verification == VerificationStatus.VALID
    assert child.verifications.count() == 2
    assert Trial.objects.count() == trials


def test_the_very_same_proof_is_refused_as_before(step: EvolutionStep) -> None:
    child = worked(step, is_sorry=False)
    assert child.verification == VerificationStatus.INVALID
    assert child.verifications.count() == 1
    assert any("the same child again" in line for line in step.refusals)
