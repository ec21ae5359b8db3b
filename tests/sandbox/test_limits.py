"""Limits strike and are named."""

from __future__ import annotations

import pytest

from sandbox.contracts import Limits
from sandbox.errors import Refused
from sandbox.limits import DEFAULT_DISK_BYTES, resolve_limits
from tests.sandbox import limit_cases
from tests.sandbox.conformance import Bench
from tests.sandbox.kinds import KINDS, Check, each_of


@KINDS
@pytest.mark.parametrize("case", each_of(limit_cases.CASES))
def test_limit(case: Check, any_bench: Bench) -> None:
    case(any_bench)


def test_the_suite_does_not_shrink() -> None:
    assert len({case.__name__ for case in limit_cases.CASES}) == len(limit_cases.CASES) >= 12


def test_what_was_not_asked_for_gets_a_default() -> None:
    assert resolve_limits(Limits(), can_use_quota=False).disk_bytes == DEFAULT_DISK_BYTES


@pytest.mark.parametrize(
    "limits",
    [
        Limits(cpus=0),
        Limits(cpus=float("nan")),
        Limits(memory_bytes=-1),
        Limits(memory_bytes=1000),
        Limits(disk_bytes=0),
        Limits(processes=0),
        Limits(descriptors=-5),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: Limits) -> None:
    with pytest.raises(Refused):
        resolve_limits(limits, can_use_quota=False)


def test_a_part_of_a_cpu_is_said_to_be_a_whole_one_without_a_quota() -> None:
    exact = resolve_limits(Limits(cpus=0.5), can_use_quota=True)
    coarse = resolve_limits(Limits(cpus=0.5), can_use_quota=False)
    assert (exact.cpu_quota, exact.notes) == (0.5, ())
    assert (coarse.cpu_quota, coarse.notes) == (None, ("cpus = 0.5 is enforced as 1 whole",))


def test_more_cpus_than_there_are_is_noted() -> None:
    assert "this machine has" in resolve_limits(Limits(cpus=4096), can_use_quota=True).notes[0]
