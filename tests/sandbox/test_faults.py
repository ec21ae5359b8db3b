"""A small share of what `bench/faults.py` counts over thousands of trials, on every back-end."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench import killing, ways
from bench.cases import Case
from bench.faults import UNDISTURBED, Tally, run_faulty
from bench.injection import Fault, Plan, misreport, plan
from evolution.writing import write_bundle
from sandbox.contracts import Outcome, SandboxFile, SolverEnd, TrialResult
from tests.evolution.sample_bundles import sample_bundle

pytestmark = pytest.mark.slow

WAYS = [
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("bubblewrap-image", marks=[pytest.mark.bubblewrap, pytest.mark.docker]),
    pytest.param("docker", marks=pytest.mark.docker),
]
_JUDGE = b"""#!/bin/bash
if [ "$(cat /app/out/n)" = 2 ]; then status=passed reward=1; else status=failed reward=0; fi
printf '{"results": {"tests": [{"name": "count", "status": "%s"}]}}' $status \
    >/logs/verifier/ctrf.json
echo $reward >/logs/verifier/reward.txt
"""


@pytest.fixture
def case() -> Case:
    """A bundle whose image needs no packages, and whose verdict depends on the work."""
    return Case("small", sample_bundle(SandboxFile("tests/test.sh", _JUDGE, 0o755)))


@pytest.mark.parametrize("way", WAYS)
def test_every_fault_is_reported_as_what_it_was(way: str, case: Case, tmp_path: Path) -> None:
    with ways.opened_behind_proxy(way, tmp_path) as (backend, proxy):
        tally = run_faulty(backend, [case], proxy, trials=60, rate=0.05, seed=12)
    assert tally.is_clean, tally.report()
    assert sum(tally.counts.values()) == 60
    struck = {fault for fault, _done, _reported in tally.counts}
    assert struck == {UNDISTURBED, *Fault}
    fails = [reported for fault, _, reported in tally.counts if reported.startswith("fail")]
    assert set(fails) <= {"fail (quota)", "fail (out_of_memory)"}


@pytest.mark.parametrize("way", WAYS)
def test_after_kill_9_of_everything_one_pass_leaves_nothing(
    way: str, case: Case, tmp_path: Path
) -> None:
    write_bundle(case.bundle, tmp_path / "seeds" / "small")
    said: list[str] = []
    killed = killing.kill_all(
        way, tmp_path, tmp_path / "seeds", times=3, seed=5, is_alone=False, say=said.append
    )
    assert [kill["left"] for kill in killed] == [{}, {}, {}]
    assert any(kill["held"] for kill in killed), said


# --- the judging of reports can tell --------------------------------------------------------------


def _planned(case: Case, fault: Fault, *, is_work_done: bool) -> Plan:
    for seed in itertools.count():
        chosen = plan(fault, case.trial("oracle"), random.Random(seed), seed)
        if chosen.is_work_done == is_work_done:
            return chosen
    raise AssertionError


_BROKEN = TrialResult(Outcome.INFRA_ERROR, error="the sandbox ended during exec")
_ZERO = TrialResult(Outcome.FAIL, rewards=(("reward", 0.0),))
_FULL = TrialResult(Outcome.PASS, rewards=(("reward", 1.0),))


def test_a_reward_of_zero_by_the_machinery_is_misreported(case: Case) -> None:
    chosen = _planned(case, Fault.SANDBOX, is_work_done=True)
    assert not misreport(chosen, ["container killed"], _BROKEN)
    for result in (_ZERO, _FULL, TrialResult(Outcome.INFRA_ERROR, error="no such file: x")):
        assert misreport(chosen, ["container killed"], result)


def test_a_broken_connection_may_be_survived_but_costs_no_reward(case: Case) -> None:
    chosen = _planned(case, Fault.CONNECTION, is_work_done=True)
    assert not misreport(chosen, ["connection broken"], _BROKEN)
    assert not misreport(chosen, ["connection broken"], _FULL)
    assert misreport(chosen, ["connection broken"], _ZERO)


def test_a_limit_must_be_named_and_the_work_judged(case: Case) -> None:
    chosen = _planned(case, Fault.DISK, is_work_done=True)
    assert misreport(chosen, ["x"], _FULL)
    assert misreport(chosen, ["x"], TrialResult(Outcome.PASS, solver_end=SolverEnd.QUOTA))
    assert misreport(chosen, ["x"], TrialResult(Outcome.FAIL, solver_end=SolverEnd.QUOTA))
    assert misreport(chosen, ["x"], _BROKEN)


def test_an_undisturbed_trial_must_pass(case: Case) -> None:
    assert not misreport(None, [], _FULL)
    assert misreport(None, [], _ZERO)
    assert misreport(None, [], TrialResult(Outcome.PASS, solver_end=SolverEnd.TIMEOUT))
    missed = _planned(case, Fault.SANDBOX, is_work_done=True)
    assert misreport(missed, [], _BROKEN)
    tally = Tally()
    tally.add(1, missed, [], _FULL)
    assert (tally.missed, tally.is_clean) == (1, True)


def test_drift_and_faults_that_hold_a_trial_up_are_problems(case: Case) -> None:
    chosen = _planned(case, Fault.SANDBOX, is_work_done=True)
    tally = Tally()
    tally.add(1, chosen, ["container killed"], replace(_BROKEN, seconds=29.0))
    tally.add(2, chosen, ["container killed"], replace(_BROKEN, seconds=31.0))
    tally.finish({"descriptors": (10, 12), "threads": (1, 1), "containers": (0, 0)})
    assert tally.problems == ["trial 2: it took 31 s"]
    tally = Tally()
    tally.finish({"descriptors": (10, 100), "threads": (1, 1), "containers": (0, 1)})
    assert [problem.split()[1] for problem in tally.problems] == ["descriptors", "containers"]
