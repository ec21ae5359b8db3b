"""Run the original tests, then the checks of every demand, and write one reward for both.

The reward is the original one when all demands are met, else 0. Where the original tests leave no
readable reward, or checks cannot be loaded, no reward is left either: that is a broken verifier,
not a failed attempt.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location

TYPE_CHECKING = False  # the modules for types alone would double the time of a start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Entry = dict[str, Any]

TESTS = os.path.dirname(os.path.abspath(__file__))
LOGS = "/logs/verifier"
REWARD_TEXT = f"{LOGS}/reward.txt"
REWARD_JSON = f"{LOGS}/reward.json"
REPORT = f"{LOGS}/ctrf.json"


def run_base() -> None:
    """Run the original tests with the path that they were given."""
    script = f"{TESTS}/base_test.sh"
    os.chmod(script, 0o755)
    environment = dict(os.environ)
    environment["PATH"] = environment.pop("BASE_PATH", environment["PATH"])
    os.spawnve(os.P_WAIT, "/bin/bash", ["bash", "-c", script], environment)


def read(path: str) -> str:
    """A file's text."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_rewards() -> dict[str, float]:
    """The rewards by name that the original tests wrote. Ends the run when there are none."""
    try:
        if os.path.exists(REWARD_JSON):
            rewards = json.loads(read(REWARD_JSON))
            assert isinstance(rewards, dict), "no table"
            assert rewards, "nothing in it"
        else:
            rewards = {"reward": float(read(REWARD_TEXT))}
        for value in rewards.values():
            assert type(value) in (int, float), "no number"
            assert math.isfinite(value), "not finite"
    except (OSError, ValueError, AssertionError) as error:
        # What was written stays there, to be refused as what it is.
        sys.exit(f"the original tests left no readable reward: {error!r}")
    return rewards


def read_report(rewards: dict[str, float]) -> list[Entry]:
    """The entries of the original report; without one, the original counts as one check."""
    try:
        tests = json.loads(read(REPORT))["results"]["tests"]
        assert all(isinstance(test["name"], str) for test in tests)
    except (OSError, ValueError, LookupError, TypeError, AssertionError):
        tests = []
    passed = rewards.get("reward", next(iter(rewards.values()))) >= 1
    return tests or [{"name": "base", "status": "passed" if passed else "failed", "duration": 0}]


def checks_of(name: str) -> dict[str, Callable[[], None]]:
    """The checks of one demand, in the order in which they are written down."""
    path = f"{TESTS}/demands/{name}.py"
    spec = spec_from_file_location(name, path)
    assert spec, path
    assert spec.loader, path
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {name[6:]: item for name, item in vars(module).items() if name.startswith("check_")}
    if not found:
        raise ValueError(f"{path} holds no checks")
    return found


class Failure:
    """Remembers what a check stumbled over, in words, and lets the next one run."""

    message = ""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, AssertionError):
            self.message = str(error) or "the assertion does not hold"
        elif isinstance(error, Exception):
            self.message = f"{type(error).__name__}: {error}"
        return isinstance(error, Exception)


def run_check(name: str, check: Callable[[], None]) -> Entry:
    """One entry of the report. Whatever a check stumbles over is the work's fault."""
    begin = time.perf_counter()
    failure = Failure()
    with failure:
        check()
    status = "failed" if failure.message else "passed"
    message = failure.message
    duration = round((time.perf_counter() - begin) * 1000)
    return {"name": name, "status": status, "duration": duration, "message": message[:2000]}


def write_report(tests: list[Entry]) -> None:
    """One report for all checks."""
    failed = sum(test.get("status") == "failed" for test in tests)
    passed = sum(test.get("status") == "passed" for test in tests)
    summary = {"tests": len(tests), "passed": passed, "failed": failed, "pending": 0}
    summary.update(skipped=0, other=len(tests) - passed - failed, start=0, stop=0)
    results = {"tool": {"name": "run_demands"}, "summary": summary, "tests": tests}
    with open(REPORT, "w", encoding="utf-8") as file:
        json.dump({"results": results}, file)


def main() -> None:
    """Judge the work."""
    os.makedirs(LOGS, exist_ok=True)
    for path in (REWARD_TEXT, REWARD_JSON, REPORT):
        if os.path.lexists(path):
            os.remove(path)
    run_base()
    rewards = read_rewards()
    tests = read_report(rewards)
    written = {path: read(path) for path in (REWARD_TEXT, REWARD_JSON) if os.path.exists(path)}
    for path in written:
        os.remove(path)
    # From here on there is no reward, until all checks have been run.
    folder = f"{TESTS}/demands"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    demands = [name[:-3] for name in names if name.endswith(".py")]
    own = [
        run_check(f"{demand}.{name}", check)
        for demand in demands
        for name, check in checks_of(demand).items()
    ]
    write_report(tests + own)
    is_met = all(test["status"] == "passed" for test in own)
    for path, text in written.items():
        nothing = json.dumps(dict.fromkeys(rewards, 0)) if path == REWARD_JSON else "0"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if is_met else f"{nothing}\n")


main()
