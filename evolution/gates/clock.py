"""Another day inside a sandbox: what Python and `date` take for now is moved, nothing else is.

Sandboxes share the clock of the machine. A `.pth` file makes every Python of the image load a
module that moves `time` and `datetime`, isolated mode included; a `date` in front of the real one
does the same for scripts that look programs up. Programs in other languages see the real time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from sandbox.contracts import SandboxFile, SolverSpec, TrialSpec

MARK = "ratchet: the clock is moved"
"""What the first Python that is started says on its standard error."""
SWITCH = "RATCHET_CLOCK"
_VERSIONS = range(8, 16)
_MENTIONS = re.compile(
    rb"\b(datetime|time\.(time|localtime|gmtime|strftime|ctime)|date\.today|strftime|utcnow|"
    rb"timestamp\(|EPOCH\w*|find\b.*-mtime|openssl|gpg|certificate)\b|(?m:^|[\s(`;|&])date\b"
)

_MODULE = '''\
"""Moves the clock of this Python."""
import os
import sys

SECONDS = %(days)d * 86400


def move():
    import datetime
    import time

    real = {name: getattr(time, name) for name in ("time", "time_ns", "gmtime", "localtime",
                                                   "strftime", "ctime", "asctime")}
    time.time = lambda: real["time"]() + SECONDS
    time.time_ns = lambda: real["time_ns"]() + SECONDS * 10**9
    time.gmtime = lambda s=None: real["gmtime"](time.time() if s is None else s)
    time.localtime = lambda s=None: real["localtime"](time.time() if s is None else s)
    time.strftime = lambda f, t=None: real["strftime"](f, time.localtime() if t is None else t)
    time.ctime = lambda s=None: real["ctime"](time.time() if s is None else s)
    time.asctime = lambda t=None: real["asctime"](time.localtime() if t is None else t)
    whole, day = datetime.datetime, datetime.date

    class Kind(type):
        def __instancecheck__(cls, one):
            return isinstance(one, cls.real)

        def __subclasscheck__(cls, kind):
            return issubclass(kind, cls.real)

    class Day(day, metaclass=Kind):
        real = day

        @classmethod
        def today(cls):
            return cls.fromtimestamp(time.time())

    class Moment(whole, metaclass=Kind):
        real = whole

        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(time.time(), tz)

        @classmethod
        def today(cls):
            return cls.fromtimestamp(time.time())

        @classmethod
        def utcnow(cls):
            return cls.fromtimestamp(time.time(), datetime.timezone.utc).replace(tzinfo=None)

    Day.__name__ = Day.__qualname__ = "date"
    Moment.__name__ = Moment.__qualname__ = "datetime"
    Day.__module__ = Moment.__module__ = "datetime"
    datetime.date, datetime.datetime = Day, Moment


if not getattr(sys, "_ratchet_clock", False):
    sys._ratchet_clock = True
    move()
    if os.environ.pop("%(switch)s", ""):
        sys.stderr.write("%(mark)s\\n")
        sys.stderr.flush()
'''
_DATE = """\
#!/bin/sh
# What `date` says in %(days)d days. A fixed day stays as it is.
for real in /usr/bin/date /bin/date; do [ -x "$real" ] && break; done
moved=
for word in "$@"; do
    case $word in
    -d*now*|-d*today*|-d*day*|-d*ago*|-d*week*|-d*month*|-d*year*|-d*hour*) exec "$real" "$@" ;;
    -d|-d*|--date*|-r*|--reference*|-f*|--file*|-s*|--set*) moved=no ;;
    esac
done
[ -n "$moved" ] && exec "$real" "$@"
exec "$real" -d '%(days)d days' "$@"
"""


def clock_files(days: int) -> tuple[SandboxFile, ...]:
    """What has to lie in a sandbox, by absolute path, so that its clock is moved."""
    module = _MODULE % {"days": days, "switch": SWITCH, "mark": MARK}
    files = [SandboxFile("/usr/local/bin/date", (_DATE % {"days": days}).encode(), 0o755)]
    for minor in _VERSIONS:
        for folder in ("dist-packages", "site-packages"):
            place = f"/usr/local/lib/python3.{minor}/{folder}"
            files += [
                SandboxFile(f"{place}/ratchet_clock.py", module.encode()),
                SandboxFile(f"{place}/ratchet_clock.pth", b"import ratchet_clock\n"),
            ]
    return tuple(sorted(files))


def moved_solver(solver: SolverSpec, days: int) -> SolverSpec:
    """The solver, with the clock moved by these days before it starts."""
    files = [replace(f, path=f".clock{f.path}") for f in clock_files(days)]
    command = (
        "cp -R /solution/.clock/usr/local/. /usr/local/ 2>/dev/null; rm -rf /solution/.clock; "
        f"exec {solver.command}"
    )
    return replace(solver, files=tuple(sorted((*solver.files, *files))), command=command)


def announced(spec: TrialSpec) -> TrialSpec:
    """The trial, its tests saying `MARK` where their clock is moved."""
    env = tuple(sorted({**dict(spec.verifier.env), SWITCH: "1"}.items()))
    return replace(spec, verifier=replace(spec.verifier, env=env))


def moved_judging(spec: TrialSpec, state: Iterable[SandboxFile], days: int) -> TrialSpec:
    """A trial in which this state is judged with the clock moved by these days."""
    return replace(
        announced(spec),
        solver=SolverSpec(name="state"),
        state=tuple(sorted((*state, *clock_files(days)))),
        is_traced=False,
        keep_state=False,
    )


def mentions_time(files: Iterable[SandboxFile]) -> bool:
    """Whether these programs say a word about the time of day."""
    return any(_MENTIONS.search(file.data) for file in files if file.link is None)
