"""Run the original tests, then the checks of every demand, and write one reward for both.

The reward is the original one when all demands are met, else 0. Where the original tests leave no
readable reward, or checks cannot be loaded, no reward is left either: that is a broken verifier,
not a failed attempt.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
LOGS = Path("/logs/verifier")
REWARD_TEXT = LOGS / "reward.txt"
REWARD_JSON = LOGS / "reward.json"
REPORT = LOGS / "ctrf.json"
Entry = dict[str, Any]


def run_base() -> None:
    """Run the original tests with the path that they were given."""
    script = TESTS / "base_test.sh"
    script.chmod(0o755)
    environment = dict(os.environ)
    environment["PATH"] = environment.pop("BASE_PATH", environment["PATH"])
    subprocess.run([str(script)], env=environment, check=False)


def read_rewards() -> dict[str, float]:
    """The rewards by name that the original tests wrote. Ends the run when there are none."""
    try:
        if REWARD_JSON.exists():
            rewards = json.loads(REWARD_JSON.read_text(encoding="utf-8"))
            assert isinstance(rewards, dict), "no table"
            assert rewards, "nothing in it"
        else:
            rewards = {"reward": float(REWARD_TEXT.read_text(encoding="utf-8"))}
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
        tests = json.loads(REPORT.read_text(encoding="utf-8"))["results"]["tests"]
        assert all(isinstance(test["name"], str) for test in tests)
    except (OSError, ValueError, LookupError, TypeError, AssertionError):
        tests = []
    passed = rewards.get("reward", next(iter(rewards.values()))) >= 1
    return tests or [{"name": "base", "status": "passed" if passed else "failed", "duration": 0}]


def checks_of(path: Path) -> dict[str, Callable[[], None]]:
    """The checks of one demand, in the order in which they are written down."""
    spec = spec_from_file_location(path.stem, path)
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
    REPORT.write_text(json.dumps({"results": results}, indent=1), encoding="utf-8")


def main() -> None:
    """Judge the work."""
    LOGS.mkdir(parents=True, exist_ok=True)
    for path in (REWARD_TEXT, REWARD_JSON, REPORT):
        path.unlink(missing_ok=True)
    run_base()
    rewards = read_rewards()
    tests = read_report(rewards)
    written = {path: path.read_bytes() for path in (REWARD_TEXT, REWARD_JSON) if path.exists()}
    for path in written:
        path.unlink()
    # From here on there is no reward, until all checks have been run.
    own = [
        run_check(f"{path.stem}.{name}", check)
        for path in sorted((TESTS / "demands").glob("*.py"))
        for name, check in checks_of(path).items()
    ]
    write_report(tests + own)
    is_met = all(test["status"] == "passed" for test in own)
    for path, data in written.items():
        nothing = json.dumps(dict.fromkeys(rewards, 0)) if path == REWARD_JSON else "0"
        path.write_bytes(data if is_met else nothing.encode() + b"\n")


main()
