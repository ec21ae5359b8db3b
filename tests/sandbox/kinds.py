"""The kinds of back-ends that a suite is run on, with the markers of what each needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.sandbox.conformance_bench import Bench

Check = Callable[[Bench], None]

KINDS = pytest.mark.parametrize(
    "any_bench",
    [
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param(
            "bubblewrap-image",
            marks=[pytest.mark.bubblewrap, pytest.mark.docker, pytest.mark.slow],
        ),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow]),
    ],
    indirect=True,
    scope="session",
)

# More than a second on an idle machine, by what they wait for.
_SLOW = frozenset(
    (
        *("a_solver_out_of_time_is_judged_all_the_same", "a_verifier_out_of_time_is_a_fault"),
        *("a_build_that_takes_too_long_is_ended", "usage_is_counted"),
        *("half_a_cpu_is_half_a_cpu", "one_cpu_is_one_cpu", "a_fork_bomb_is_held_and_named"),
        *("memory_of_many_processes_is_added_up", "a_full_disk_is_named"),
        *("a_lack_of_descriptors_is_named", "a_flood_of_output_ends_in_time"),
        "a_folder_that_becomes_a_link_leads_no_write_astray",
        "a_folder_that_becomes_a_link_leads_no_read_astray",
    )
)


def each_of(checks: Sequence[Check], slow: Sequence[Check] = ()) -> list[Any]:
    """Parameters for these checks, named by them; those that take long are marked so."""
    marks = pytest.mark.slow
    return [
        pytest.param(
            check,
            id=check.__name__,
            marks=[marks] if check in slow or check.__name__ in _SLOW else [],
        )
        for check in checks
    ]
