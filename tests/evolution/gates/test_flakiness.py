"""How often the reference solution may still fail, as a number that the gate decides on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evolution.contracts import GateResult, GateStatus
from evolution.difficulty.posterior import flake_bound
from evolution.gates import oracle
from evolution.gates.case import Case, Depth
from evolution.gates.protocol import verify_bundle
from evolution.gates.specs import oracle_asks
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import Outcome, TrialResult
from tests.evolution.real_sandbox import CONFIG, edited, orders, subject_of

GOOD = TrialResult(Outcome.PASS, (("reward", 1.0),))
BAD = TrialResult(Outcome.FAIL, (("reward", 0.0),))
BROKEN = TrialResult(Outcome.INFRA_ERROR, error="the engine is gone")


def judged(*results: TrialResult, limit: float = oracle.MOST_FLAKY) -> GateResult:
    config = replace(CONFIG, oracle_runs=len(results))
    return oracle.judge(oracle_asks(Case(subject_of(orders()), config)), results, limit)


def figures(answer: GateResult) -> dict[str, float]:
    return dict(answer.figures)


def test_twenty_clean_runs_are_enough_and_say_what_they_prove() -> None:
    answer = judged(*[GOOD] * 20)
    assert answer.status is GateStatus.PASSED
    assert "20 of 20 fresh sandboxes (flaky at most 14 % with 95 %" in answer.reason.replace(
        "%", " %", 1
    )
    assert figures(answer)["flaky_at_most"] == pytest.approx(0.1391, abs=1e-3)
    assert figures(answer)["failures"] == 0


def test_fewer_clean_runs_tell_too_little() -> None:
    answer = judged(*[GOOD] * 10)
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "too few runs" in answer.reason


def test_one_failure_in_twenty_is_named_with_its_interval() -> None:
    answer = judged(*[GOOD] * 12, BAD, *[GOOD] * 7)
    assert answer.status is GateStatus.FAILED
    assert "so on run 13, and in 1 of 20 runs: flaky, between 0% and 22%" in answer.reason
    assert figures(answer) == pytest.approx(
        {"runs": 20, "passed": 19, "failures": 1, "flaky_at_most": 0.2161, "states": 1}, abs=1e-3
    )


def test_the_bound_decides_not_the_single_failure() -> None:
    assert judged(BAD, *[GOOD] * 59).status is GateStatus.PASSED
    assert judged(*[BAD] * 5, *[GOOD] * 55).status is GateStatus.FAILED


def test_a_few_runs_allow_no_failure() -> None:
    limit = flake_bound(3)
    assert judged(GOOD, GOOD, GOOD, limit=limit).status is GateStatus.PASSED
    assert judged(GOOD, BAD, GOOD, limit=limit).status is GateStatus.FAILED
    assert judged(BAD, limit=limit).reason == "the reference solution earns 0, not 1"


def test_runs_that_gave_no_result_are_counted_as_none() -> None:
    answer = judged(*[GOOD] * 19, BROKEN)
    assert answer.status is GateStatus.INCONCLUSIVE
    assert figures(answer)["runs"] == 19


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_tests_that_fail_now_and_then_are_found_in_sandboxes(runner: TrialRunner) -> None:
    chance = "import os\n    assert os.urandom(1)[0] < 160, 'bad luck'\n    "
    unlucky = edited(orders(), "tests/checks.py", ("assert report()", f"{chance}assert report()"))
    subject = subject_of(orders(unlucky))
    verdict = verify_bundle(subject, None, runner, MemoryLog(), CONFIG, depth=Depth.FULL)
    answer = verdict.gates[-1]
    assert (answer.gate, answer.status) == ("oracle", GateStatus.FAILED)
    assert "failed: days" in answer.reason
