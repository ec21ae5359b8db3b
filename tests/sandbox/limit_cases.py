"""Limits strike, are named, and leave the sandbox usable. Functions of a `Bench`."""

from __future__ import annotations

import errno
import time

from sandbox.contracts import Limits
from tests.sandbox.conformance import MIB, Bench, out, sh


def python(program: str) -> list[str]:
    """A Python command line."""
    return ["python3", "-I", "-c", program]


def a_memory_hog_is_ended_and_named(bench: Bench) -> None:
    program = "x = []\nwhile True: x.append(bytearray(8 << 20))"
    with bench.start(Limits(memory_bytes=100 * MIB)) as sandbox:
        result = sandbox.exec(python(program), timeout_seconds=30)
        assert (result.exit_status, result.timed_out) == (137, False)
        assert sandbox.usage().oom_kills >= 1
        assert out(sandbox, "echo usable") == "usable\n"


def memory_of_many_processes_is_added_up(bench: Bench) -> None:
    program = (
        "import os, time\n"
        "for _ in range(6):\n"
        " if os.fork() == 0:\n"
        "  x = bytearray(os.urandom(1 << 20)) * 30; time.sleep(20); os._exit(0)\n"
        "for _ in range(6): os.wait()\n"
    )
    with bench.start(Limits(memory_bytes=120 * MIB)) as sandbox:
        started = time.monotonic()
        sandbox.exec(python(program + "raise SystemExit"), timeout_seconds=1.5)
        assert sandbox.usage().oom_kills >= 1
        assert time.monotonic() - started < 8


def a_spike_between_two_samples_is_found(bench: Bench) -> None:
    program = "import mmap\nm = mmap.mmap(-1, 60 << 20)\nm.write(bytes(1 << 20) * 60)\nm.close()"
    with bench.start(Limits(memory_bytes=40 * MIB)) as sandbox:
        sandbox.exec(python(program), timeout_seconds=30)
        assert sandbox.usage().oom_kills >= 1


def what_fits_is_left_alone(bench: Bench) -> None:
    with bench.start(Limits(memory_bytes=100 * MIB)) as sandbox:
        result = sandbox.exec(python("x = bytearray(60 << 20)"), timeout_seconds=30)
        assert result.exit_status == 0
        assert sandbox.usage().oom_kills == 0


def a_full_disk_is_named(bench: Bench) -> None:
    for folder in ("/app", "/tmp", "/usr/local", "/var/log"):
        with bench.start(Limits(disk_bytes=8 * MIB)) as sandbox:
            result = sh(sandbox, f"head -c {20 * MIB} /dev/zero > {folder}/bomb")
            assert result.exit_status == 1
            assert sandbox.usage().is_disk_full
            assert (sandbox.usage().disk_bytes or 0) <= 8 * MIB


def a_bomb_of_empty_files_is_named(bench: Bench) -> None:
    program = (
        "import os\n"
        "try:\n"
        " for n in range(200_000): open(f'/tmp/{n}', 'w').close()\n"
        f"except OSError as e: raise SystemExit(e.errno == {errno.ENOSPC})\n"
    )
    with bench.start(Limits(disk_bytes=8 * MIB)) as sandbox:
        assert sandbox.exec(python(program), timeout_seconds=60).exit_status == 1
        assert sandbox.usage().is_disk_full


def shared_memory_has_its_own_end(bench: Bench) -> None:
    with bench.start(Limits(disk_bytes=8 * MIB)) as sandbox:
        assert sh(sandbox, f"head -c {20 * MIB} /dev/zero > /dev/shm/bomb").exit_status == 1
        assert sh(sandbox, "echo > /dev/bomb").exit_status == 1


def a_fork_bomb_is_held(bench: Bench) -> None:
    with bench.start(Limits(processes=40)) as sandbox:
        result = sh(sandbox, "f() { f | f & }; f; sleep 1", 4)
        usage = sandbox.usage()
        assert 30 <= (usage.peak_processes or 0) <= 60
        sandbox.kill_all()
        assert out(sandbox, "echo usable") == "usable\n"
        assert result.seconds < 8


def descriptors_end_where_asked(bench: Bench) -> None:
    program = (
        "import os\nfds = []\n"
        "try:\n"
        " while True: fds.append(os.dup(0))\n"
        "except OSError: print(len(fds))"
    )
    with bench.start(Limits(descriptors=64)) as sandbox:
        result = sandbox.exec(python(program), timeout_seconds=20)
        assert 50 <= int(result.stdout) <= 64


def a_flood_of_output_ends_in_time(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, "yes", 1)
        assert result.timed_out
        assert result.truncated
        assert result.seconds < 5


def one_cpu_is_one_cpu(bench: Bench) -> None:
    with bench.start(Limits(cpus=1)) as sandbox:
        assert out(sandbox, "nproc") == "1\n"
        assert out(sandbox, "taskset -c 0-63 nproc") == "1\n"


CASES = (
    a_memory_hog_is_ended_and_named,
    memory_of_many_processes_is_added_up,
    a_spike_between_two_samples_is_found,
    what_fits_is_left_alone,
    a_full_disk_is_named,
    a_bomb_of_empty_files_is_named,
    shared_memory_has_its_own_end,
    a_fork_bomb_is_held,
    descriptors_end_where_asked,
    a_flood_of_output_ends_in_time,
    one_cpu_is_one_cpu,
)
