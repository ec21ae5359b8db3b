"""A hostile command reaches nothing outside its sandbox."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sandbox import escape_cases
from tests.sandbox.conformance import Bench


@pytest.mark.bubblewrap
@pytest.mark.parametrize("case", escape_cases.CASES, ids=lambda case: case.__name__)
def test_bubblewrap(case: Callable[[Bench], None], bench: Bench) -> None:
    case(bench)
