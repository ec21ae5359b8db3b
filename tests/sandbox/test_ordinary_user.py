"""The same cases hold when an ordinary user, without any right, runs the back-end."""

from __future__ import annotations

import json

import pytest

from tests.sandbox import conformance, escape_cases, limit_cases
from tests.sandbox.kinds import Check
from tests.sandbox.ordinary_user import home_of_ordinary_user, run_as_ordinary_user

_ALL = """
import json, pathlib, sys, traceback
from sandbox.backends.bubblewrap import BubblewrapBackend
from tests.sandbox import conformance, escape_cases, fragile, limit_cases
from tests.sandbox.room import room_for_four
home = pathlib.Path(sys.argv[1])
backend = BubblewrapBackend(home / 'run time', home / 'ca:che, too', places=room_for_four(home))
bench = conformance.Bench(
    lambda _script: backend, fragile=lambda: fragile.bubblewrap_that_may_die(backend)
)
results = {}
for case in eval(sys.argv[2]):
    try:
        case(bench)
        results[case.__name__] = ''
    except BaseException as error:
        results[case.__name__] = ''.join(traceback.format_exception(error)[-3:])
backend.close()
print(json.dumps(results))
"""


_PARTS: dict[str, tuple[Check, ...]] = {
    "(*conformance.PROTOCOL, *escape_cases.CALLS)": (
        *conformance.PROTOCOL,
        *escape_cases.CALLS,
    ),
    "conformance.REAL": conformance.REAL,
    "(*limit_cases.CASES, *escape_cases.OTHERS, *escape_cases.BOMBS)": (
        *limit_cases.CASES,
        *escape_cases.OTHERS,
        *escape_cases.BOMBS,
    ),
}
_FIRST, *_MORE = _PARTS


def _run(cases: str) -> dict[str, str]:
    with home_of_ordinary_user() as home:
        done = run_as_ordinary_user(_ALL, str(home), cases, seconds=300.0)
    assert done.returncode == 0, done.stderr
    results: dict[str, str] = json.loads(done.stdout)
    return results


@pytest.mark.bubblewrap
def test_an_ordinary_user_gets_the_same_isolation() -> None:
    _check(_FIRST)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("part", _MORE)
def test_an_ordinary_user_gets_the_same_behaviour_and_limits(part: str) -> None:
    _check(part)


def _check(part: str) -> None:
    results = _run(part)
    assert {name: why for name, why in results.items() if why} == {}
    assert list(results) == [check.__name__ for check in _PARTS[part]]
