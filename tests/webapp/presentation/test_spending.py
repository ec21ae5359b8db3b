"""Where a trial's time went, and which limits it met."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.contracts import Outcome, SolverEnd, TrialResult, Usage
from webapp.presentation.spending import limits_struck, spending


def result(
    end: SolverEnd = SolverEnd.DONE, phases: tuple[tuple[str, float], ...] = (), **usage: Any
) -> TrialResult:
    return TrialResult(Outcome.FAIL, solver_end=end, phases=phases, usage=Usage(**usage))


def test_phases_follow_one_another_on_a_bar_of_a_hundred() -> None:
    shown = spending(result(phases=(("stop", 1.0), ("solver", 6.0), ("own", 1.0), ("start", 2.0))))
    assert [(p.name, p.at, p.share) for p in shown.phases] == [
        ("start", 0.0, 20.0),
        ("solver", 20.0, 60.0),
        ("stop", 80.0, 10.0),
        ("own", 90.0, 10.0),
    ]
    assert (shown.seconds, shown.work_share) == (10.0, 60.0)


def test_a_trial_without_times_has_no_share() -> None:
    assert spending(result()).work_share is None
    assert spending(result(phases=(("start", 0.0),))).phases[0].share == 0.0


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (result(), ()),
        (result(SolverEnd.TIMEOUT), ("time, while solving",)),
        (result(SolverEnd.OUT_OF_MEMORY, oom_kills=1), ("memory (1 process killed)",)),
        (
            result(SolverEnd.QUOTA, oom_kills=2, is_disk_full=True),
            ("memory (2 processes killed)", "disk"),
        ),
        (result(SolverEnd.QUOTA), ("a quota, while solving",)),
        (
            result(SolverEnd.QUOTA, struck=("disk", "processes"), is_disk_full=True),
            ("disk", "processes"),
        ),
        (result(SolverEnd.OUT_OF_MEMORY), ("memory",)),
    ],
)
def test_limits_are_named(shown: TrialResult, expected: tuple[str, ...]) -> None:
    assert limits_struck(shown) == expected
