"""What trials say of a rate: a mean with its interval, and bounds that hold for small numbers.

All by the regularised incomplete beta function, computed exactly enough here (absolute error below
1e-12), so that no numerical library is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_STEP_CAP = 10_000
_TINY = 1e-300
_EPSILON = 1e-15


@dataclass(frozen=True, slots=True)
class Posterior:
    """A rate estimated from trials. `low` and `high` enclose it with the probability `level`."""

    passes: int
    attempts: int
    mean: float
    low: float
    high: float
    level: float


def posterior(
    passes: int, attempts: int, *, level: float = 0.90, prior: tuple[float, float] = (0.5, 0.5)
) -> Posterior:
    """The pass rate after some trials: a Beta posterior, with its equal-tailed interval.

    The prior is Jeffreys' by default. At 0 or all passes the interval reaches the border, which an
    equal-tailed one would wrongly exclude. Raises ValueError on impossible counts.
    """
    _check_counts(passes, attempts)
    _check_level(level)
    a, b = prior[0] + passes, prior[1] + attempts - passes
    tail = (1.0 - level) / 2.0
    low = 0.0 if passes == 0 else beta_quantile(tail, a, b)
    high = 1.0 if passes == attempts else beta_quantile(1.0 - tail, a, b)
    return Posterior(passes, attempts, a / (a + b), low, high, level)


def pass_rate(passes: int, attempts: int) -> Posterior:
    """How often a solver passes an environment, with the 90 % interval that pages show."""
    return posterior(passes, attempts, level=0.90)


def lower_bound(successes: int, n: int, confidence: float = 0.90) -> float:
    """Clopper and Pearson's one-sided lower bound of a rate, right at least `confidence` often.

    0.0 without a success. Raises ValueError on impossible counts.
    """
    _check_counts(successes, n)
    _check_level(confidence)
    return 0.0 if successes == 0 else beta_quantile(1.0 - confidence, successes, n - successes + 1)


def upper_bound(successes: int, n: int, confidence: float = 0.90) -> float:
    """Clopper and Pearson's one-sided upper bound of a rate; 1.0 when every trial succeeded."""
    return 1.0 - lower_bound(n - successes, n, confidence)


def flake_bound(runs: int, confidence: float = 0.95) -> float:
    """How often something may still fail that never failed in `runs` runs.

    "Flaky at most x with this confidence": 3 runs leave 0.63, 20 leave 0.14. 1.0 without a run.
    """
    return upper_bound(0, runs, confidence)


def _check_counts(successes: int, n: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is impossible")


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence of {level} is not between 0 and 1")


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b): P(X <= x) for X ~ Beta(a, b)."""
    if not (a > 0.0 and b > 0.0):
        raise ValueError("a and b must be positive")
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return min(1.0, front * _continued_fraction(x, a, b) / a)
    return max(0.0, 1.0 - front * _continued_fraction(1.0 - x, b, a) / b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), by the modified Lentz method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _STEP_CAP):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + factor * d
            c = 1.0 + factor / c
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1.0) < _EPSILON:
            break
    return value


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with P(X <= x) = p for X ~ Beta(a, b), by bisection down to the last bit."""
    return _bisect(lambda x: beta_cdf(x, a, b) < p)


def _bisect(is_below: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2.0
        if middle in (low, high):
            return middle
        if is_below(middle):
            low = middle
        else:
            high = middle
