"""Processes of a sandbox: how they start, live on, and end."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from sandbox.contracts import Limits, NetworkPolicy
from sandbox.errors import SandboxUnavailable
from tests.sandbox.conformance_bench import (
    Bench,
    everything,
    first_process_beside,
    host_processes,
    living,
    out,
    perl,
    sh,
)

_STUBBORN = """
trap '' TERM HUP INT
(setsid sleep 300 &)
(setsid bash -c 'trap "" TERM; while :; do sleep 300; done' &)
nohup sleep 300 >/dev/null 2>&1 &
perl -e 'use POSIX; if (!fork) { POSIX::setsid(); fork or exec "sleep", "300"; exit } wait'
perl -e '$SIG{$_} = "IGNORE" for grep !/^(KILL|STOP|NUM|__)/, keys %SIG; sleep 300' &
sleep 300 & kill -STOP $!
echo ready
while :; do sleep 1; done
"""


def a_timeout_ends_everything(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, _STUBBORN, 3.0)
        assert result.timed_out
        assert result.stdout == b"ready\n"
        assert result.seconds < 12
        assert living(sandbox, "sleep 1", "sleep 300", "perl") == []
        assert out(sandbox, "echo still here") == "still here\n"


def a_timeout_ends_services_started_before_and_keeps_files(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "setsid sleep 305 & echo kept > /app/kept")
        assert len(living(sandbox, "sleep 305")) == 1
        result = sh(sandbox, "printf partial; printf why >&2; sleep 60", 2.0)
        assert (result.timed_out, result.stdout, result.stderr) == (True, b"partial", b"why")
        assert living(sandbox, "sleep") == []
        assert out(sandbox, "cat /app/kept") == "kept\n"


def a_command_that_ends_in_time_is_no_timeout(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, "sleep 0.3; exit 137", 30)
    assert (result.timed_out, result.exit_status) == (False, 137)
    assert 0.25 < result.seconds < 20


def kill_all_ends_what_was_left_behind(bench: Bench) -> None:
    left = "sleep 300 & (setsid sleep 301 &); nohup sleep 302 >/dev/null 2>&1 & touch /app/kept"
    with bench.start() as sandbox:
        sh(sandbox, f"trap '' TERM; {left}; sleep 303 & kill -STOP $!")
        assert len(living(sandbox, "sleep 30")) == 4
        sandbox.kill_all()
        assert living(sandbox, "sleep 30") == []
        sandbox.kill_all()
        assert out(sandbox, "ls /app/kept") == "/app/kept\n"


def a_service_lives_on_and_may_write(bench: Bench) -> None:
    service = "while sleep 0.05; do echo tick; echo tock >&2; date >> /app/beats; done &"
    with bench.start() as sandbox:
        assert sh(sandbox, service).seconds < 10
        time.sleep(0.3)
        before = int(out(sandbox, "wc -l < /app/beats"))
        time.sleep(0.5)
        assert int(out(sandbox, "wc -l < /app/beats")) > before


def nobody_is_left_unburied(bench: Bench) -> None:
    orphans = "for n in $(seq 40); do (sleep 0.01 &) ; done; sleep 0.4"
    count = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true"
    with bench.start() as sandbox:
        sh(sandbox, orphans)
        assert int(out(sandbox, f"sleep 0.3; {count}")) == 0


def words_of_a_command_come_as_they_are(bench: Bench) -> None:
    words = [
        "",
        " ",
        "a b",
        "-n",
        "--",
        "'",
        '"',
        "$HOME",
        "`id`",
        "\\",
        "ü→\U0001f600",
        "a\nb",
        "*",
    ]
    words.append("x" * 100_000)
    with bench.start() as sandbox:
        program = 'printf "%s\\0" "$@"'
        result = sandbox.exec(["bash", "-c", program, "name", *words], timeout_seconds=20)
    assert result.stdout.decode().split("\0")[:-1] == words


def what_cannot_run_is_a_result(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert sandbox.exec(["no-such-program"], timeout_seconds=20).exit_status == 127
        assert sandbox.exec(["/no/such/program"], timeout_seconds=20).exit_status == 127
        assert sandbox.exec(["/etc/passwd"], timeout_seconds=20).exit_status == 126
        assert sandbox.exec(["/etc"], timeout_seconds=20).exit_status == 126
        result = sandbox.exec(["true"], timeout_seconds=20, workdir="/nowhere")
        assert result.exit_status == 126
        assert sandbox.exec(["true"], timeout_seconds=20).exit_status == 0


def a_crash_leaves_no_core_behind(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert out(sandbox, "ulimit -c; ulimit -Hc") == "0\n0\n"
        assert perl(sandbox, "kill 'SEGV', $$; sleep 9").exit_status == 128 + 11
        assert out(sandbox, "ls /app") == "data\n"


def a_command_may_end_all_the_others_and_itself(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "setsid sleep 306 & kill -9 -1", 20)
        assert living(sandbox, "sleep 306") == []
        assert out(sandbox, "echo goes on") == "goes on\n"


# -- ends that nobody asked for ---------------------------------------------------------------


def _errors_of(sandbox_call: object) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            sandbox_call()  # type: ignore[operator]
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def _wait_for(mark: str) -> int:
    end = time.monotonic() + 15
    while not (found := host_processes(mark)):
        assert time.monotonic() < end, mark
        time.sleep(0.02)
    return found[0]


def _mark(digit: int) -> str:
    """A number of seconds that no other command of this machine sleeps."""
    return f"{digit}{time.time_ns() % 10**9:09d}"


def stopping_breaks_off_a_running_command(bench: Bench) -> None:
    sandbox = bench.start()
    mark = _mark(7)
    thread, errors = _errors_of(lambda: sh(sandbox, f"sleep {mark}", 90))
    _wait_for(f"sleep {mark}")
    started = time.monotonic()
    sandbox.stop()
    thread.join(30)
    assert [type(error) for error in errors] == [SandboxUnavailable]
    assert time.monotonic() - started < 15
    assert not host_processes(f"sleep {mark}")
    sandbox.stop()


def a_sandbox_that_is_killed_says_so(bench: Bench) -> None:
    with bench.start() as sandbox:
        mark = _mark(8)
        thread, errors = _errors_of(lambda: sh(sandbox, f"sleep {mark}", 90))
        first = first_process_beside(_wait_for(f"sleep {mark}"))
        os.kill(first, signal.SIGKILL)
        thread.join(30)
        assert [type(error) for error in errors] == [SandboxUnavailable]
        with pytest.raises(SandboxUnavailable):
            sh(sandbox, "echo alive")
        with pytest.raises(SandboxUnavailable):
            everything(sandbox, "/app")


def a_machinery_that_goes_away_says_so(bench: Bench) -> None:
    assert bench.fragile is not None
    with bench.fragile() as (backend, cut):
        image = backend.prepare(bench.spec())
        sandbox = backend.start(image, Limits(), NetworkPolicy())
        mark = _mark(9)
        thread, errors = _errors_of(lambda: sh(sandbox, f"sleep {mark}", 90))
        _wait_for(f"sleep {mark}")
        cut()
        thread.join(30)
        assert [type(error) for error in errors] == [SandboxUnavailable]
        with pytest.raises(SandboxUnavailable):
            sh(sandbox, "echo alive")
        with suppress(SandboxUnavailable):  # what is left behind then is the reaper's
            sandbox.stop()


CHECKS = (
    a_timeout_ends_everything,
    a_timeout_ends_services_started_before_and_keeps_files,
    a_command_that_ends_in_time_is_no_timeout,
    kill_all_ends_what_was_left_behind,
    a_service_lives_on_and_may_write,
    nobody_is_left_unburied,
    words_of_a_command_come_as_they_are,
    what_cannot_run_is_a_result,
    a_crash_leaves_no_core_behind,
    a_command_may_end_all_the_others_and_itself,
    stopping_breaks_off_a_running_command,
    a_sandbox_that_is_killed_says_so,
    a_machinery_that_goes_away_says_so,
)
