"""Prepared plots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webapp.presentation.plots import curve, nice_ticks


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_ticks_are_few_rise_evenly_and_reach_the_highest_value(highest: float) -> None:
    ticks = nice_ticks(highest)
    assert ticks[0] == 0
    assert ticks[-1] >= highest * (1 - 1e-6)
    assert 2 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))


def test_points_lie_in_the_frame_and_higher_values_are_higher() -> None:
    shown = curve([(0, 1.0, 5), (1, None, 0), (2, 3.0, 4)])
    assert shown is not None
    low, high = shown.points
    assert low.y > high.y
    assert low.x < high.x
    assert all(0 <= p.x <= shown.width and 0 <= p.y <= shown.height for p in shown.points)
    assert high.label == "generation 2: 3.00, n = 4"


def test_nothing_known_is_no_curve() -> None:
    assert curve([(0, None, 0)]) is None
    assert curve([]) is None
