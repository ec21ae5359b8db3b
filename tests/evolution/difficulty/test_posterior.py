"""Bounds and intervals against values known from closed forms and printed tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.difficulty.posterior import (
    beta_cdf,
    beta_quantile,
    flake_bound,
    lower_bound,
    posterior,
    upper_bound,
)

_COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def _binomial_tail(successes: int, n: int, rate: float) -> float:
    """P(X >= successes) for X ~ Binomial(n, rate), summed term by term."""
    return math.fsum(
        math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(successes, n + 1)
    )


@given(_COUNTS, st.floats(0.001, 0.999))
def test_the_incomplete_beta_is_the_binomial_tail(counts: tuple[int, int], rate: float) -> None:
    successes, n = counts
    if successes == 0:
        return
    exact = _binomial_tail(successes, n, rate)
    assert beta_cdf(rate, successes, n - successes + 1) == pytest.approx(exact, abs=1e-11)


@given(st.floats(0.001, 0.999), st.floats(0.1, 500), st.floats(0.1, 500))
def test_the_incomplete_beta_is_symmetric_and_a_probability(x: float, a: float, b: float) -> None:
    value = beta_cdf(x, a, b)
    assert 0.0 <= value <= 1.0
    assert value + beta_cdf(1.0 - x, b, a) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("x", "a", "b", "known"),
    [
        (0.5, 2, 2, 0.5),
        (0.5, 0.5, 0.5, 0.5),
        (0.25, 1, 1, 0.25),
        (0.2, 2, 3, 0.1808),  # 6x^2 - 8x^3 + 3x^4
        (0.3, 1, 5, 1 - 0.7**5),
        (0.9, 5, 1, 0.9**5),
        (0.1, 0.5, 0.5, 2 / math.pi * math.asin(math.sqrt(0.1))),
    ],
)
def test_the_incomplete_beta_at_known_points(x: float, a: float, b: float, known: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(known, abs=1e-12)


@given(st.floats(0.001, 0.999), st.floats(0.5, 200), st.floats(0.5, 200))
def test_a_quantile_undoes_the_distribution(p: float, a: float, b: float) -> None:
    assert beta_cdf(beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "n", "confidence", "known"),
    [
        (20, 20, 0.90, 0.1 ** (1 / 20)),  # all succeed: alpha ** (1 / n)
        (20, 20, 0.95, 0.05 ** (1 / 20)),
        (1, 20, 0.95, 1 - 0.95 ** (1 / 20)),
        (10, 10, 0.975, 0.691503),  # two-sided 95 % table: 10 of 10
        (5, 10, 0.975, 0.187086),
        (9, 10, 0.975, 0.554984),
        (0, 7, 0.9, 0.0),
    ],
)
def test_the_lower_bound_at_known_points(
    successes: int, n: int, confidence: float, known: float
) -> None:
    assert lower_bound(successes, n, confidence) == pytest.approx(known, abs=1e-6)


@given(_COUNTS, st.floats(0.5, 0.99))
def test_the_lower_bound_holds_exactly_as_often_as_it_says(
    counts: tuple[int, int], confidence: float
) -> None:
    successes, n = counts
    bound = lower_bound(successes, n, confidence)
    assert 0.0 <= bound <= successes / n
    if successes:
        assert _binomial_tail(successes, n, bound) == pytest.approx(1 - confidence, abs=1e-8)
    assert upper_bound(n - successes, n, confidence) == pytest.approx(1 - bound)


def test_nineteen_of_twenty_mutants_pass_the_gate_and_eighteen_do_not() -> None:
    assert lower_bound(19, 20, 0.9) > 0.8
    assert lower_bound(18, 20, 0.9) < 0.8


@pytest.mark.parametrize(
    ("runs", "confidence", "known"),
    [(0, 0.95, 1.0), (3, 0.95, 0.6316), (10, 0.95, 0.2589), (20, 0.95, 0.1391), (30, 0.95, 0.0950)],
)
def test_what_runs_without_failure_prove(runs: int, confidence: float, known: float) -> None:
    assert flake_bound(runs, confidence) == pytest.approx(known, abs=1e-4)
    assert (1 - flake_bound(runs, confidence)) ** runs == pytest.approx(
        1 - confidence if runs else 1.0
    )


def test_the_posterior_of_eight_attempts() -> None:
    rate = posterior(3, 8)
    assert rate.mean == pytest.approx(3.5 / 9)
    assert beta_cdf(rate.low, 3.5, 5.5) == pytest.approx(0.05, abs=1e-9)
    assert beta_cdf(rate.high, 3.5, 5.5) == pytest.approx(0.95, abs=1e-9)
    assert (posterior(0, 8).low, posterior(8, 8).high) == (0.0, 1.0)
    assert (posterior(0, 0).low, posterior(0, 0).high) == (0.0, 1.0)


@given(_COUNTS)
def test_more_passes_never_lower_the_posterior(counts: tuple[int, int]) -> None:
    passes, n = counts
    rate = posterior(passes, n)
    assert rate.low <= rate.mean <= rate.high
    if passes < n:
        better = posterior(passes + 1, n)
        assert better.mean > rate.mean
        assert better.low >= rate.low
        assert better.high >= rate.high


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="impossible"):
        lower_bound(*counts)
    with pytest.raises(ValueError, match="impossible"):
        posterior(*counts)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_a_confidence_outside_its_range_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        lower_bound(1, 2, confidence)
