"""The programs by which the tests of corpus bundles judge: plain Python, and plain shell."""

from __future__ import annotations

import re
from collections.abc import Callable

READING = '''\
"""Checks of what was delivered."""
import csv
import json
import os


def meaning(path, data):
    """What a file says, whatever its white space: a value, rows, or lines."""
    if path.endswith(".json"):
        return json.loads(data)
    if path.endswith((".bin", ".db", ".gz", ".tar")):
        return data
    text = data.decode("utf-8")
    if path.endswith(".csv"):
        return [row for row in csv.reader(text.splitlines()) if row]
    return [line.rstrip() for line in text.rstrip().split("\\n")]


def content(path):
    with open(path, "rb") as handle:
        return meaning(path, handle.read())


'''
_RUNNER = '''\
"""Runs the check_* functions of checks.py: a report, then the reward."""
import json
import runpy

tests = []
for name, check in list(runpy.run_path("/tests/checks.py").items()):
    if name.startswith("check_"):
        status, message = "passed", ""
        try:
            check()
        except Exception as error:
            status, message = "failed", "%s: %s" % (type(error).__name__, error)
        tests.append({"name": name[6:], "status": status, "duration": 0, "message": message[:500]})
failed = sum(test["status"] == "failed" for test in tests)
summary = {"tests": len(tests), "passed": len(tests) - failed, "failed": failed,
           "pending": 0, "skipped": 0, "other": 0, "start": 0, "stop": 0}
with open("/logs/verifier/ctrf.json", "w") as report:
    json.dump({"results": {"tool": {"name": "checks"}, "summary": summary, "tests": tests}}, report)
with open("/logs/verifier/reward.txt", "w") as reward:
    reward.write("1" if tests and not failed else "0")
'''
_COLLECTOR = '''\
"""Collects and runs the test_* functions of the test_* modules beside it."""
import glob
import runpy
import sys
import traceback

passed = failed = 0
for module in sorted(glob.glob("/tests/test_*.py")):
    for name, test in list(runpy.run_path(module).items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            passed += 1
            print(name, "PASSED")
        except BaseException:
            failed += 1
            print(name, "FAILED")
            traceback.print_exc(limit=-2)
print("%d passed, %d failed" % (passed, failed))
sys.exit(0 if passed and not failed else 1)
'''
PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin\nexport PATH\n"
_BY_STATUS = """\
#!/bin/bash
{path}if {command}; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
"""


def _runner(source: str, flags: str) -> dict[str, str]:
    return {
        "test.sh": f"#!/bin/sh\n{PATH}exec python3 {flags} /tests/run_checks.py\n",
        "run_checks.py": _RUNNER,
        "checks.py": source,
    }


def _functions(source: str, flags: str) -> dict[str, str]:
    command = f"python3 {flags} /tests/collect.py"
    return {
        "test.sh": _BY_STATUS.format(path=PATH, command=command),
        "collect.py": _COLLECTOR,
        "test_outputs.py": source.replace("def check_", "def test_"),
    }


def _unittest(source: str, flags: str) -> dict[str, str]:
    names = re.findall(r"^def (check_\w+)", source, re.MULTILINE)
    methods = "".join(f"    test_{n[6:]} = staticmethod({n})\n" for n in names)
    tail = f"\n\nclass Outputs(unittest.TestCase):\n{methods}\n\nunittest.main(verbosity=2)\n"
    command = f"python3 {flags} /tests/test_outputs.py"
    return {
        "test.sh": _BY_STATUS.format(path=PATH, command=command),
        "test_outputs.py": f"{source}\n\nimport unittest\n{tail}",
    }


def _script(source: str, flags: str) -> dict[str, str]:
    names = re.findall(r"^def (check_\w+)", source, re.MULTILINE)
    tail = f"""

def main():
    complaints = []
    for check in ({", ".join(names)},):
        try:
            check()
        except Exception as error:
            complaints.append("%s: %r" % (check.__name__, error))
    print("\\n".join(complaints) or "all is well")
    with open("/logs/verifier/reward.json", "w") as reward:
        json.dump({{"reward": 0.0 if complaints else 1.0}}, reward)


import json
main()
"""
    return {
        "test.sh": f"#!/bin/bash\n{PATH}python3 {flags} /tests/verify.py\n",
        "verify.py": f"{source}{tail}",
    }


Laying = Callable[[str, str], dict[str, str]]
TESTS: dict[str, Laying] = {
    "runner": _runner,
    "functions": _functions,
    "unittest": _unittest,
    "script": _script,
}
"""By make of tests: from check functions and Python's flags to the files of `tests/`."""


def slug(path: str) -> str:
    """A file name for what is expected at a path; it keeps the suffix."""
    return path.removeprefix("/app/").removeprefix("out/").replace("/", "_")


def shell_test(outputs: tuple[str, ...]) -> str:
    """Tests in the shell alone: lines are compared, whatever white space ends them."""
    lines = [
        "#!/bin/bash",
        "# Every output must say what is expected.",
        PATH.strip(),
        "verdict=1",
        "judge() {",
        '    if [ -f "$1" ] && [ ! -L "$1" ] &&',
        "        diff <(sed 's/[[:space:]]*$//' \"$1\") <(sed 's/[[:space:]]*$//' \"$2\"); then",
        '        echo "ok: $1"',
        "    else",
        '        echo "not ok: $1"',
        "        verdict=0",
        "    fi",
        "}",
    ]
    lines += [f"judge {path} /tests/expected/{slug(path)}" for path in outputs]
    lines.append('echo "$verdict" > /logs/verifier/reward.txt')
    return "\n".join(lines) + "\n"
