"""Tests that are locked: what a solver left running, lying about or set has no say in them.

For tests that have to run where the solver worked. A prelude is put into `tests/test.sh` behind
its first line: it ends the solver's processes, removes rewards that are there already and links
that lead to the tests, searches programs in the system's folders first, and keeps Python and pytest
from loading what lies about.
The script itself stays as it is but for `exec` before Python, which would pass the prelude by.
`task.toml` then says `[metadata.ratchet] ends_processes = true`: our sandboxes end the solver's
processes even before the tests come in, so that none can rewrite them in between.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum

from evolution import execution
from evolution.bundle import Bundle, BundleError, with_config

TEST = "tests/test.sh"
MARK = "# Locked: what the solver left running, lying about or set has no say in what follows."

_SHELL = re.compile(r"#!\s*/\S*?(?:env\s+)?(ba|da)?sh\b[^\n]*\n")
_EXEC = re.compile(r"(?m)^(\s*)exec\s+(?=(?:python3?|pytest)\s)")


class Lock(StrEnum):
    """How tight: `TIGHT` also keeps Python from its site packages, except for pytest."""

    TIGHT = "tight"
    LOOSE = "loose"


_PATH = """\
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin
"""
_END = """\
lock_keep=" 1 $$ " lock_at=$$
while [ "$lock_at" -gt 1 ]; do
    lock_up=0
    while read -r lock_key lock_value lock_rest; do
        if [ "$lock_key" = PPid: ]; then lock_up=$lock_value; break; fi
    done < "/proc/$lock_at/status"
    lock_keep="$lock_keep$lock_up " lock_at=$lock_up
done
for lock_pass in 1 2; do
    for lock_one in /proc/[0-9]*; do
        case $lock_keep in
        *" ${lock_one#/proc/} "*) ;;
        *) kill -9 "${lock_one#/proc/}" 2>/dev/null || : ;;
        esac
    done
done
"""
_CLEAR = """\
rm -rf /logs/verifier/reward.txt /logs/verifier/reward.json /logs/verifier/ctrf.json
rm -f /etc/ld.so.preload 2>/dev/null || :
"""
_LINKS = """\
find / \\( -path /proc -o -path /sys -o -path /dev -o -path /usr -o -path /etc -o -path /tests \\
    -o -path /ratchet-toolchain \\) -prune \\
    -o -type l \\( -lname '*tests*' -o -lname '*/logs*' -o -lname '*..*' -o -lname / \\) -print \\
    2>/dev/null | while IFS= read -r lock_one; do
    case $(readlink -f "$lock_one") in
    / | /tests | /tests/* | /logs | /logs/verifier | /logs/verifier/*) rm -f "$lock_one" ;;
    esac
done || :
"""
_PYTHON = """\
unset LD_PRELOAD LD_LIBRARY_PATH PYTHONPATH PYTHONHOME PYTHONSTARTUP PERL5LIB PERL5OPT CDPATH
export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
"""
_PYTEST = """\
unset BASH_ENV ENV
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
export PYTEST_ADDOPTS="{options}"
"""
_LAUNCH = """\
lock_pytest='import glob, os, sys
version = "python%d.%d" % sys.version_info[:2]
places = [os.path.join(sys.prefix, "lib", version), "/usr/lib/python3"]
places += ["/usr/local/lib/" + version]
for place in places:
    sys.path += [p for p in glob.glob(place + "/*-packages") if p not in sys.path]
import pytest
sys.exit(pytest.main())'
pytest() { command python3 -I -S -B -c "$lock_pytest" "$@"; }
python3() {
    if [ "${1-} ${2-}" = "-m pytest" ]; then shift 2; pytest "$@"; return; fi
    command python3 -I -S -B "$@"
}
python() { python3 "$@"; }
"""


def locking_refusal(bundle: Bundle) -> str | None:
    """Why its tests cannot be locked, in one line; None if they can."""
    file = bundle.by_path.get(TEST)
    if file is None or file.link is not None:
        return f"{TEST} is missing, or a link"
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return f"{TEST} is not UTF-8"
    if MARK in text:
        return "its tests are locked already"
    return None if _SHELL.match(text) else f"{TEST} is no script of sh or bash"


def locked(bundle: Bundle, lock: Lock = Lock.TIGHT, *, ends_processes: bool = True) -> Bundle:
    """The bundle with its tests locked. `ends_processes`: nothing that the solver started lives on.

    Raises BundleError when `locking_refusal` has a reason.
    """
    if reason := locking_refusal(bundle):
        raise BundleError(TEST, reason)
    file = bundle.by_path[TEST]
    head, _, rest = file.data.decode().partition("\n")
    prelude = f"{MARK}\n{_PATH}{_END if ends_processes else ''}{_CLEAR}{_LINKS}{_PYTHON}"
    if execution.preamble(bundle) is None:  # the toolchain keeps pytest apart by itself
        prelude += _PYTEST.format(options=_options(bundle, rest))
        if lock is Lock.TIGHT:
            prelude += _LAUNCH
            rest = _EXEC.sub(r"\1", rest)
    changed = bundle.with_files([replace(file, data=f"{head}\n{prelude}{rest}".encode())])
    if not ends_processes or execution.task_config(bundle).is_separate:
        return changed
    return with_config(changed, {("metadata", "ratchet", "ends_processes"): True})


def _options(bundle: Bundle, text: str) -> str:
    own = {path for path in bundle.by_path if path.startswith("tests/")}
    has_conftest = any(path.endswith("/conftest.py") for path in own)
    has_settings = any(path.endswith(("pytest.ini", "pyproject.toml", "tox.ini")) for path in own)
    options = ["-p no:cacheprovider"]
    options.append("--confcutdir=/tests" if has_conftest else "--noconftest")
    options += [] if has_settings else ["-c /dev/null", "--rootdir=/tests"]
    return " ".join(options + (["-p ctrf"] if "--ctrf" in text else []))
