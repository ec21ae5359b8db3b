"""A share of the shams: refused by the gate that is there for each, and honest steps are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import shams
from bench.sham_kinds import KINDS
from bench.shams import Score
from evolution.contracts import GateResult, GateStatus, Verdict
from tests.conftest import ROOT

SEED = ROOT / "seeds" / "auth-log-forensics"
REFUSED_BY = {
    "rename_only": "parent_solution",
    "prose_only": "demand",
    "demand_already_met": "demand",
    "limit_above_naive": "demand",
    "missing_file": "demand",
    "hint_in_instruction": "leak",
    "empty_test": "demand",
    "idle_adaptation": "demand",
    "broken_naive": "demand",
    "old_words": "sequence",
}


@pytest.mark.bubblewrap
def test_shams_are_refused_by_the_gates_that_are_there_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--seeds", str(SEED), "--kinds", ",".join(REFUSED_BY), "--instances", "1", "--json"]
    assert shams.main([*words, "--home", str(tmp_path)]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    assert {kind: list(one["gates"]) for kind, one in kinds.items()} == {
        kind: [gate] for kind, gate in REFUSED_BY.items()
    }


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_an_honest_step_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seeds", str(SEED), "--kinds", "honest", "--instances", "1", "--json"]
    assert shams.main([*words, "--home", str(tmp_path)]) == 0
    (honest,) = json.loads(capsys.readouterr().out)["kinds"].values()
    assert (honest["refused"], honest["instances"]) == (0, 1)


def verdict(gate: str, status: GateStatus) -> Verdict:
    return Verdict(status, (GateResult(gate, 1, status, "so it is"),))


def test_what_no_gate_answers_for_certain_is_a_miss() -> None:
    score = Score("prose_only")
    score.count("a", verdict("demand", GateStatus.FAILED))
    score.count("b", verdict("demand", GateStatus.INCONCLUSIVE))
    score.count("c", verdict("demand", GateStatus.PASSED))
    assert (score.refused, score.instances, len(score.missed)) == (1, 3, 2)
    assert score.interval[0] < 1 / 3 < score.interval[1]
    assert not score.void


def test_a_sham_whose_own_solution_fails_says_nothing() -> None:
    score = Score("prose_only")
    score.count("a", verdict("oracle", GateStatus.FAILED))
    assert score.void == ["a: oracle: so it is"]


def test_an_honest_step_that_is_refused_is_an_error() -> None:
    score = Score(shams.HONEST)
    score.count("a", verdict("demand", GateStatus.PASSED))
    assert not score.void
    score.count("b", verdict("demand", GateStatus.FAILED))
    assert score.void


def test_there_are_enough_kinds_and_an_unknown_one_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(KINDS) >= 8
    with pytest.raises(SystemExit):
        shams.parsed(["--kinds", "nothing"])
    assert "no kind 'nothing'" in capsys.readouterr().err
