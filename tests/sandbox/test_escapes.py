"""A hostile command reaches nothing outside its sandbox, and its bombs are held."""

from __future__ import annotations

import pytest

from tests.sandbox import escape_cases
from tests.sandbox.conformance import Bench
from tests.sandbox.kinds import KINDS, Check, each_of

ALL = escape_cases.CASES + escape_cases.BOMBS


def test_the_suite_does_not_shrink() -> None:
    assert len({case.__name__ for case in ALL}) == len(ALL) >= 50


@KINDS
@pytest.mark.parametrize("case", each_of(ALL, slow=escape_cases.BOMBS))
def test_escape(case: Check, any_bench: Bench) -> None:
    case(any_bench)
