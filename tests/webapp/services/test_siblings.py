"""A run gives no parent the same child twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from evolution.authors.procedural import ProceduralAuthor
from evolution.contracts import GateStatus
from evolution.directions import Direction
from evolution.llm.calls import CallLog
from evolution.ports import Author
from tests.evolution.toy_world import MoreWords, ToyRunner
from tests.webapp.rows import make_run
from webapp.adapters import work
from webapp.lifecycle import VerificationStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, GateRecord
from webapp.services import runs

pytestmark = pytest.mark.django_db


@contextmanager
def of_one_idea(_: EvolutionStep, __: CallLog) -> Iterator[Author]:
    yield ProceduralAuthor((MoreWords("word", Direction.LENGTH),))


def worked(run: EvolutionRun, ordinal: int, number: int) -> EvolutionStep:
    """The run's step of that ordinal after its work, with that seed."""
    runs.advance_run(run)
    step = EvolutionStep.objects.get(run=run, ordinal=ordinal)
    EvolutionStep.objects.filter(pk=step.pk).update(seed=number)
    assert work.work_on_step(step.pk, lambda _: ToyRunner(), of_one_idea, "tests")
    step.refresh_from_db()
    return step


def test_a_near_duplicate_of_a_sibling_is_refused_by_the_novel_gate(toy_seed: Environment) -> None:
    run = make_run(toy_seed, generations=1, children=2)
    first, second = worked(run, 0, 1), worked(run, 1, 2)
    assert first.child is not None
    assert second.child is None
    refused = Environment.objects.filter(step=second)
    assert refused.exists()
    assert {one.verification for one in refused} == {VerificationStatus.INVALID}
    for answer in GateRecord.objects.filter(verification__environment__in=refused, gate="novel"):
        assert answer.status == GateStatus.FAILED
        assert first.child.short_digest in answer.reason


def test_the_very_same_child_is_no_candidate_and_its_answers_stay(toy_seed: Environment) -> None:
    run = make_run(toy_seed, generations=1, children=2)
    first, second = worked(run, 0, 1), worked(run, 1, 1)
    assert first.child is not None
    assert second.child is None
    assert not Environment.objects.filter(step=second).exists()
    answers = GateRecord.objects.filter(verification__environment=first.child)
    assert {answer.status for answer in answers} == {GateStatus.PASSED}


def test_another_run_makes_the_same_child_again(toy_seed: Environment) -> None:
    first = worked(make_run(toy_seed, generations=1), 0, 1)
    again = worked(make_run(toy_seed, generations=1), 0, 1)
    assert again.child == first.child is not None


def test_what_one_run_refuses_keeps_the_answers_that_another_run_had(toy_seed: Environment) -> None:
    child = worked(make_run(toy_seed, generations=1), 0, 1).child
    assert child is not None
    run = make_run(toy_seed, generations=1, children=2)
    assert worked(run, 0, 2).child is not None
    assert worked(run, 1, 1).child is None
    child.refresh_from_db()
    assert child.verification == VerificationStatus.VALID
    answers = GateRecord.objects.filter(verification__environment=child)
    assert {answer.status for answer in answers} == {GateStatus.PASSED}
