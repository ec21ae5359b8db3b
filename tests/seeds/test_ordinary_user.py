"""The bundled seeds where an ordinary user runs them, and only root exists in a sandbox."""

from __future__ import annotations

import json

import pytest

from tests.sandbox.ordinary_user import home_of_ordinary_user, run_as_ordinary_user

_TRIALS = """
import json, pathlib, sys
from evolution.execution import nop, oracle, trial_spec
from evolution.reading import find_bundles
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.user_ids import IdRange
from sandbox.trial import Runner
home = pathlib.Path(sys.argv[1])
backend = BubblewrapBackend(home / 'run', home / 'cache', ids=IdRange(0, 1))
runner = Runner(backend)
outcomes = {}
for found in find_bundles(pathlib.Path('seeds')):
    for solver in (oracle, nop):
        result = runner.run(trial_spec(found.bundle, solver(found.bundle)))
        said = result.outcome if result.outcome == 'pass' else f'{result.outcome}: {result.error}'
        outcomes[f'{found.name} {solver.__name__}'] = said
backend.close()
print(json.dumps(outcomes))
"""


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_reference_solutions_pass_and_doing_nothing_fails_where_only_root_exists() -> None:
    with home_of_ordinary_user() as home:
        done = run_as_ordinary_user(_TRIALS, str(home), seconds=300.0)
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert len(outcomes) == 22
    expected = {name: "pass" if name.endswith("oracle") else "fail: " for name in outcomes}
    assert outcomes == expected
