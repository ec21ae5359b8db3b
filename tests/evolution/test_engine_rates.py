"""How much a step changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.mutation_rates import common_length, mutation_rates, word_rate
from sandbox.contracts import SandboxFile
from tests.evolution.real_sandbox import orders


def test_nothing_changed_is_zero() -> None:
    rates = mutation_rates(orders(), orders())
    assert (rates.instruction, rates.environment, rates.verification, rates.mean) == (0, 0, 0, 0)


def test_every_part_is_measured_in_its_own_units() -> None:
    base = orders()
    base = base.with_files([SandboxFile("tests/run_checks.py", b"def main(): pass\nmain()\n")])
    child = base.with_files(
        [
            SandboxFile("instruction.md", b"Something else entirely."),
            SandboxFile("environment/data/more.csv", b"1\n"),
            SandboxFile(
                "tests/checks.py",
                base.by_path["tests/checks.py"].data + b"\n\ndef check_more():\n    pass\n",
            ),
        ]
    )
    rates = mutation_rates(base, child)
    assert rates.instruction == 1.0
    assert rates.environment == pytest.approx(1 / 3, abs=1e-6)
    # test.sh; two units of run_checks.py; three functions, the rest of checks.py, and a new one
    assert rates.verification == pytest.approx(1 / 8, abs=1e-6)
    parts = (rates.instruction, rates.environment, rates.verification)
    assert rates.mean == pytest.approx(sum(parts) / 3, abs=1e-5)


def test_comments_and_layout_of_tests_are_no_change() -> None:
    base = orders()
    text = base.text("tests/checks.py").replace("def check_days", "# a comment\n\n\ndef check_days")
    assert text != base.text("tests/checks.py")
    child = base.with_files([SandboxFile("tests/checks.py", text.encode())])
    assert mutation_rates(base, child).verification == 0.0


@pytest.mark.parametrize(
    ("one", "two", "rate"),
    [("", "", 0.0), ("a b c", "a b c", 0.0), ("a b c d", "a c", 0.5), ("a", "b", 1.0)],
)
def test_words_are_compared_by_their_longest_common_subsequence(
    one: str, two: str, rate: float
) -> None:
    assert word_rate(one, two) == rate


WORDS = st.lists(st.sampled_from("abcd"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS)
def test_the_common_length_is_symmetric_and_bounded(one: list[str], two: list[str]) -> None:
    length = common_length(one, two)
    assert length == common_length(two, one)
    assert 0 <= length <= min(len(one), len(two))
    assert common_length(one, one) == len(one)
