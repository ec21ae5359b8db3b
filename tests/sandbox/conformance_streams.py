"""Exit statuses, output and input of real commands."""

from __future__ import annotations

import hashlib
import signal
import time

from sandbox.contracts import OUTPUT_CAP_BYTES
from tests.sandbox.conformance_bench import MIB, Bench, out, perl, sh


def exit_statuses_come_back(bench: Bench) -> None:
    statuses = (0, 1, 2, 100, 125, 126, 127, 128, 129, 137, 143, 254, 255)
    with bench.start() as sandbox:
        assert [sh(sandbox, f"exit {n}").exit_status for n in statuses] == list(statuses)


def a_signal_is_128_and_its_number(bench: Bench) -> None:
    names = ("HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "TERM", "USR1")
    with bench.start() as sandbox:
        for name in names:
            result = perl(sandbox, "kill shift, $$; sleep 9", name)
            assert result.exit_status == 128 + signal.Signals[f"SIG{name}"], name
            assert not result.timed_out


def both_streams_are_kept_apart_and_in_order(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, "for n in $(seq 400); do echo o$n; echo e$n >&2; done")
    assert result.stdout.decode().split() == [f"o{n}" for n in range(1, 401)]
    assert result.stderr.decode().split() == [f"e{n}" for n in range(1, 401)]


def nothing_is_added_to_what_was_written(bench: Bench) -> None:
    with bench.start() as sandbox:
        for text in ("", "no newline", "\n", "\n\n", "a\r\nb\rc\n"):
            result = sandbox.exec(["printf", "%s", text], timeout_seconds=20)
            assert (result.stdout, result.stderr) == (text.encode(), b"")


def escapes_for_terminals_are_only_bytes(bench: Bench) -> None:
    text = b"\x1b[31mred\x1b]8;;http://x\x07\x1b[2J\x9b\x00\x7f\x03\x04\r\n"
    with bench.start() as sandbox:
        assert sh(sandbox, "cat", stdin=text).stdout == text
        assert sh(sandbox, "cat >&2", stdin=text).stderr == text


def the_last_words_are_never_lost(bench: Bench) -> None:
    with bench.start() as sandbox:
        for number in range(8):
            result = sh(sandbox, f"head -c 70000 /dev/zero; printf last{number}; kill -9 $$")
            assert result.stdout.endswith(f"\0last{number}".encode())
            assert len(result.stdout) == 70_005


def eight_megabytes_on_both_streams_are_complete(bench: Bench) -> None:
    line = "seq 1000000 | tee /dev/stderr"
    with bench.start() as sandbox:
        result = sh(sandbox, line, 60)
    wanted = hashlib.sha256("".join(f"{n}\n" for n in range(1, 1_000_001)).encode()).digest()
    assert hashlib.sha256(result.stdout).digest() == wanted
    assert hashlib.sha256(result.stderr).digest() == wanted
    assert not result.truncated


def each_stream_has_its_own_cap_and_nobody_blocks(bench: Bench) -> None:
    size = OUTPUT_CAP_BYTES + 5 * MIB
    with bench.start() as sandbox:
        result = sh(sandbox, f"head -c {size} /dev/zero; echo end >&2", 60)
        assert (len(result.stdout), result.stderr) == (OUTPUT_CAP_BYTES, b"end\n")
        assert (result.exit_status, result.truncated) == (0, True)
        result = sh(sandbox, f"head -c {size} /dev/zero >&2; echo end", 60)
        assert (result.stdout, len(result.stderr)) == (b"end\n", OUTPUT_CAP_BYTES)
        assert (result.exit_status, result.truncated) == (0, True)


def a_command_may_close_its_streams(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, "echo first; exec <&- >&- 2>&-; sleep 0.3; touch /app/after; exit 5")
        assert (result.exit_status, result.stdout) == (5, b"first\n")
        assert out(sandbox, "ls /app/after") == "/app/after\n"


def a_child_that_keeps_the_streams_open_holds_nobody_up(bench: Bench) -> None:
    with bench.start() as sandbox:
        started = time.monotonic()
        assert out(sandbox, "sleep 60 & (setsid sleep 61 &); echo done") == "done\n"
        assert time.monotonic() - started < 15


def without_input_there_is_an_end_at_once(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert out(sandbox, "cat; wc -c; [ -t 0 ] || echo no terminal") == "0\nno terminal\n"
        assert out(sandbox, "cat; echo empty", stdin=b"") == "empty\n"


def input_is_fed_as_bytes(bench: Bench) -> None:
    data = bytes(range(256)) * 20_000
    with bench.start() as sandbox:
        assert out(sandbox, "sha256sum", stdin=data).split()[0] == hashlib.sha256(data).hexdigest()
        assert sh(sandbox, "head -c 1000000", stdin=data).stdout == data[:1_000_000]


def input_that_nobody_reads_is_no_error(bench: Bench) -> None:
    data = b"0123456789" * 500_000
    with bench.start() as sandbox:
        assert out(sandbox, "head -c 5", stdin=data) == "01234"
        assert out(sandbox, "exec <&-; echo deaf", stdin=data) == "deaf\n"
        assert sh(sandbox, "exit 4", stdin=data).exit_status == 4
        result = sh(sandbox, "sleep 60", 0.5, stdin=data)
        assert result.timed_out


def input_and_output_flow_at_once(bench: Bench) -> None:
    data = b"".join(b"%d\n" % n for n in range(400_000))
    with bench.start() as sandbox:
        result = sh(sandbox, "tee /dev/stderr", 60, stdin=data)
    assert result.stdout == data
    assert result.stderr == data


CHECKS = (
    exit_statuses_come_back,
    a_signal_is_128_and_its_number,
    both_streams_are_kept_apart_and_in_order,
    nothing_is_added_to_what_was_written,
    escapes_for_terminals_are_only_bytes,
    the_last_words_are_never_lost,
    eight_megabytes_on_both_streams_are_complete,
    each_stream_has_its_own_cap_and_nobody_blocks,
    a_command_may_close_its_streams,
    a_child_that_keeps_the_streams_open_holds_nobody_up,
    without_input_there_is_an_end_at_once,
    input_is_fed_as_bytes,
    input_that_nobody_reads_is_no_error,
    input_and_output_flow_at_once,
)
