"""Steps that only look harder are refused, each by the gate that is there for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evolution.contracts import Mutation
from evolution.ports import TrialRunner
from tests.evolution.real_sandbox import judge, refused_by, subject_of
from tests.evolution.shams import operators

pytestmark = pytest.mark.bubblewrap

Sham = Callable[[], Mutation]


@pytest.mark.parametrize(
    ("sham", "gate", "reason"),
    [
        (operators.rename_only, "parent_solution", "still passes, once the new names are put in"),
        (operators.prose_only, "demand", "should fail and passes"),
        (operators.prose_with_a_promise, "demand", "do not report the new checks care_is_taken"),
        (operators.demand_already_met, "demand", "asks for nothing that was not done already"),
        (operators.limit_above_naive, "demand", "the limit is above what it uses"),
        (operators.missing_file_brought_along, "sequence", "the solution makes it again"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_sham_is_refused_by_the_right_gate(
    runner: TrialRunner, sham: Sham, gate: str, reason: str
) -> None:
    refused = refused_by(judge(sham(), runner))
    assert list(refused) == [gate]
    assert reason in refused[gate]


def test_a_missing_file_that_nobody_needs_makes_nothing_harder(runner: TrialRunner) -> None:
    parent = subject_of(operators.with_a_note())
    refused = refused_by(judge(operators.missing_file_that_nobody_needs(), runner, parent))
    assert list(refused) == ["demand"]
    assert "should fail and passes" in refused["demand"]


def test_a_real_limit_is_accepted_where_the_sham_was_not(runner: TrialRunner) -> None:
    mutation = operators.compact_report()
    verdict = judge(mutation, runner, subject_of(operators.wasteful()))
    assert refused_by(verdict) == {}
    assert verdict.is_valid
