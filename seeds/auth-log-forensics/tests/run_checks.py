"""Runs every check_* function of /tests/checks.py; writes a CTRF report, then the reward.

A check passes when it returns, and fails when it raises; the exception's text is its message.
The reward is 1 when all checks pass, else 0. Checks that cannot be loaded leave no reward.
"""

import json
import os
import time
from importlib.util import module_from_spec, spec_from_file_location

CHECKS = "/tests/checks.py"
LOGS = "/logs/verifier"


def load_checks():
    """The check functions by name, in the order in which they are defined."""
    spec = spec_from_file_location("checks", CHECKS)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {name[6:]: item for name, item in vars(module).items() if name.startswith("check_")}
    if not found:
        raise SystemExit(CHECKS + " holds no checks")
    return found


def run_check(name, check):
    """One test entry of the report."""
    begin = time.perf_counter()
    status, message = "passed", ""
    try:
        check()
    except AssertionError as error:
        status, message = "failed", str(error) or "the assertion does not hold"
    except Exception as error:
        status, message = "failed", type(error).__name__ + ": " + str(error)
    duration = round((time.perf_counter() - begin) * 1000)
    return {"name": name, "status": status, "duration": duration, "message": message[:2000]}


def main():
    """Run all checks and write both files."""
    start = round(time.time() * 1000)
    tests = [run_check(name, check) for name, check in load_checks().items()]
    failed = sum(test["status"] == "failed" for test in tests)
    summary = {"tests": len(tests), "passed": len(tests) - failed, "failed": failed}
    summary.update(pending=0, skipped=0, other=0, start=start, stop=round(time.time() * 1000))
    results = {"tool": {"name": "run_checks"}, "summary": summary, "tests": tests}
    os.makedirs(LOGS, exist_ok=True)
    with open(LOGS + "/ctrf.json", "w", encoding="utf-8", errors="replace") as report:
        json.dump({"results": results}, report, indent=1)
    with open(LOGS + "/reward.txt", "w", encoding="utf-8") as reward:
        reward.write("0\n" if failed else "1\n")


main()
