"""How blocks are run in turn and what is made of them; no sandbox is needed for it."""

from __future__ import annotations

import pytest

from bench.cases import SEEDS, BenchError, Case, load_cases, wrong, wrong_result
from bench.measuring import Attempt, Series, measure, ratio, run_block
from bench.memory import slope
from bench.table import table
from sandbox.contracts import Outcome, TrialResult
from tests.evolution.sample_bundles import sample_bundle

CASES = [Case(name, sample_bundle()) for name in ("one", "two", "three")]


def _contender(name: str, seconds: list[float], order: list[str]) -> Series:
    """Answers at once, and says that it took the next of these seconds, again and again."""
    calls: list[str] = []

    def attempt(case: Case, agent: str) -> Attempt:
        calls.append(case.name)
        order.append(name)
        took = seconds[(len(calls) - 1) % len(seconds)]
        return Attempt(took, (("solver", took / 2),))

    return Series(name, attempt)


def test_blocks_are_run_in_turn_and_the_order_turns() -> None:
    order: list[str] = []
    ours, floor = _contender("ours", [1.0], order), _contender("floor", [0.5], order)
    measure((ours, floor), CASES, "oracle", 1, trials=6, seconds=0.0)
    warm, blocks = order[:2], order[2:]
    assert warm == ["ours", "floor"]
    assert (
        blocks == ["ours", "ours", "floor", "floor"] + ["floor"] * 2 + ["ours"] * 4 + ["floor"] * 2
    )
    assert [len(block.attempts) for block in ours.blocks] == [2, 2, 2]
    assert ratio(ours, floor) == 2.0


def test_the_ratio_is_the_median_of_the_blocks() -> None:
    order: list[str] = []
    # The first answer of each is the warming up.
    ours = _contender("ours", [9.0, 1.0, 1.0, 1.0, 8.0, 8.0, 8.0, 2.0, 2.0, 2.0], order)
    floor = _contender("floor", [1.0], order)
    measure((ours, floor), CASES, "oracle", 1, trials=9, seconds=0.0)
    assert ratio(ours, floor) == 2.0
    assert ours.seconds_per_trial == pytest.approx(33 / 9)
    assert ours.phases() == {"solver": pytest.approx(33 / 18)}


def test_a_wrong_reward_ends_the_measurement() -> None:
    series = Series("ours", lambda case, agent: Attempt(0.1, (), wrong(agent, 0.0)))
    with pytest.raises(BenchError, match="one by oracle: reward 0"):
        run_block(series.attempting, CASES, "oracle", 2)
    assert len(run_block(series.attempting, CASES, "nop", 2).attempts) == 3


@pytest.mark.parametrize(
    ("agent", "reward", "is_right"),
    [
        ("oracle", 1.0, True),
        ("oracle", 0.5, False),
        ("oracle", None, False),
        ("nop", 0.0, True),
        ("nop", 1.0, False),
        ("nop", None, False),
    ],
)
def test_what_each_agent_must_get(agent: str, reward: float | None, is_right: bool) -> None:
    assert (wrong(agent, reward) == "") is is_right


def test_broken_machinery_is_no_reward_of_zero() -> None:
    broken = TrialResult(Outcome.INFRA_ERROR, error="the engine is gone")
    assert "the engine is gone" in wrong_result("nop", broken)
    assert wrong_result("nop", TrialResult(Outcome.FAIL, rewards=(("reward", 0.0),))) == ""


def test_the_bundled_seeds_are_the_cases() -> None:
    cases = load_cases(SEEDS)
    assert [case.name for case in cases] == sorted(path.name for path in SEEDS.iterdir())
    assert cases[0].trial("oracle").solver.command
    assert cases[0].trial("nop").solver.command is None


def test_memory_that_grows_has_a_slope() -> None:
    assert slope([(0, 1), (200, 100), (400, 100), (600, 100)]) == 0
    assert slope([(0, 1), (200, 100), (400, 300), (600, 500)]) == pytest.approx(1000)


def test_a_table_is_aligned() -> None:
    lines = table(["name", "n"], [["a", 1.23456], ["long name", None]]).splitlines()
    assert lines == ["name          n", "---------  ----", "a          1.23", "long name     -"]
