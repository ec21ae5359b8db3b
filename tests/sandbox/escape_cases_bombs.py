"""Bombs: each one is held, and the host stays responsive meanwhile."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from sandbox.contracts import Limits
from tests.sandbox.conformance_bench import MIB, Bench, out, perl, sh
from tests.sandbox.escape_cases_tools import _COLUMN, NUMBERS, responsive_host

_SMALL = Limits(cpus=1, memory_bytes=100 * MIB, disk_bytes=32 * MIB, processes=60, descriptors=256)


def a_fork_bomb_is_held(bench: Bench) -> None:
    bombs = ("f() { f | f & }; f; sleep 30", "perl -e 'fork while 1'")
    with responsive_host():
        for user in bench.users:
            with bench.start(_SMALL) as sandbox:
                for bomb in bombs:
                    result = sh(sandbox, bomb, 1, user=user)
                    assert result.seconds < 20
                    sandbox.kill_all()
                    assert out(sandbox, "echo usable") == "usable\n"
                assert 30 <= (sandbox.usage().peak_processes or 0) <= 80


def a_memory_bomb_is_held(bench: Bench) -> None:
    one = "$x = 'x'; while (1) { $x .= $x }"
    many = "for (1..40) { fork or do { $x = 'x'; $x x= 20 << 20; sleep 30; exit } } wait for 1..40"
    with responsive_host():
        for user in bench.users:
            with bench.start(_SMALL) as sandbox:
                assert perl(sandbox, "$x = 'x'; $x x= 30 << 20", user=user).exit_status == 0
                assert sandbox.usage().oom_kills == 0
                assert perl(sandbox, one, user=user, seconds=30).exit_status in (1, 137)
                perl(sandbox, many, user=user, seconds=3)
                assert sandbox.usage().oom_kills >= 1
                assert out(sandbox, "echo usable") == "usable\n"


_MEMFD = f"""
for $n (1..$ARGV[0]) {{
  $name = "bomb\\0"; $fd = syscall {NUMBERS["memfd_create"][_COLUMN]}, $name, 0;
  open $f[$n], '>&=', $fd or die 'tool';
  for (1..20) {{ syswrite $f[$n], 'x' x (1 << 20) or die 'full' }} }}
print 'done';
"""
_SEGMENTS = """
for (1..$ARGV[0]) { $i = shmget 0, 20 << 20, 01666; defined $i or die 'full';
  shmwrite $i, 'x' x (20 << 20), 0, 20 << 20 or die 'full' } print 'done';
"""


def memory_without_an_owner_is_held_too(bench: Bench) -> None:
    """Memory files and System V segments, which no process need have mapped."""
    if not bench.has_memory_group:
        return
    with responsive_host():
        for program in (_MEMFD, _SEGMENTS):
            with bench.start(_SMALL) as sandbox:
                assert perl(sandbox, program, "1").stdout == b"done"
                result = perl(sandbox, program, "100", seconds=40)
                assert result.stdout != b"done"
                assert sandbox.usage().oom_kills >= 1


def a_disk_bomb_is_held(bench: Bench) -> None:
    bombs = (
        "head -c 100M /dev/zero > /app/bomb",
        "for n in $(seq 50); do head -c 2M /dev/zero > /var/tmp/$n || exit 1; done",
        "fallocate -l 100M /app/bomb",
        "dd if=/dev/zero of=/tmp/bomb bs=1M count=100 2>/dev/null",
    )
    with responsive_host():
        for bomb in bombs:
            with bench.start(_SMALL) as sandbox:
                assert sh(sandbox, "head -c 4M /dev/zero > /app/fits").exit_status == 0
                assert not sandbox.usage().is_disk_full
                is_ended = sh(sandbox, bomb, 30).exit_status != 0
                usage = sandbox.usage()
                # Where the disk is looked at now and then, a short bomb is over before that.
                assert is_ended or bench.is_disk_measured, bomb
                assert bench.is_disk_measured or (usage.disk_bytes or 0) <= 40 * MIB, usage
                assert usage.is_disk_full or "fallocate" in bomb, bomb


def a_bomb_of_deleted_files_is_held(bench: Bench) -> None:
    program = (
        "for $n (1..40) { open $f[$n], '>', '/app/x' or last; unlink '/app/x';"
        " for (1..20) { syswrite $f[$n], 'x' x (1 << 20) or (sleep(1), die 'full') } } print 'done'"
    )
    with responsive_host(), bench.start(_SMALL) as sandbox:
        result = perl(sandbox, program, seconds=40)
        assert result.stdout != b"done", result
        assert sandbox.usage().is_disk_full


def a_bomb_of_empty_files_is_held(bench: Bench) -> None:
    program = (
        "for $n (1..400_000) { mkdir '/tmp/' . int($n / 1000) if $n % 1000 == 0;"
        " open F, '>', '/tmp/' . int($n / 1000) . \"/$n\" or $n < 1000 or die 'full' } print 'done'"
    )
    with responsive_host(), bench.start(_SMALL) as sandbox:
        result = perl(sandbox, program, seconds=60)
        assert result.stdout != b"done", result
        assert sandbox.usage().is_disk_full


def a_bomb_of_shared_memory_files_is_held(bench: Bench) -> None:
    with responsive_host(), bench.start(_SMALL) as sandbox:
        assert sh(sandbox, "head -c 1M /dev/zero > /dev/shm/fits").exit_status == 0
        for folder in ("/dev/shm", "/dev", "/run", "/tmp"):
            result = sh(sandbox, f"head -c 200M /dev/zero > {folder}/bomb", 30)
            assert result.exit_status != 0, folder
            sh(sandbox, f"rm -f {folder}/bomb")


def holes_cost_nothing(bench: Bench) -> None:
    with bench.start(_SMALL) as sandbox:
        sh(sandbox, "for n in 1 2 3; do truncate -s 30M /app/$n; done")
        usage = sandbox.usage()
    assert (usage.disk_bytes or 0) < 4 * MIB
    assert not usage.is_disk_full


def a_descriptor_bomb_is_held(bench: Bench) -> None:
    program = "while (open my $f, q(<), q(/dev/null)) { push @f, $f } print scalar @f; sleep 20"
    crowd = f"for n in $(seq 30); do perl -e '{program}' & done; wait"
    with responsive_host():
        for user in bench.users:
            with bench.start(_SMALL) as sandbox:
                count = perl(sandbox, program.replace("sleep 20", ""), user=user).stdout
                assert 240 <= int(count) <= 256
                sh(sandbox, crowd, 2, user=user)
                assert out(sandbox, "echo usable") == "usable\n"


def _own_memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def an_output_bomb_is_held(bench: Bench) -> None:
    with responsive_host(), bench.start(_SMALL) as sandbox:
        result = sh(sandbox, "yes & yes >&2 & wait", 2)
        assert (result.timed_out, result.truncated) == (True, True)
        assert result.seconds < 20
        before = _own_memory_bytes()
        sh(sandbox, "yes & yes >&2 &")
        time.sleep(1.5)
        assert out(sandbox, "echo usable") == "usable\n"
        assert _own_memory_bytes() - before < 200 * MIB


def a_log_bomb_is_held(bench: Bench) -> None:
    flood = (
        "for f in /proc/1/fd/1 /proc/1/fd/2 /dev/console /dev/kmsg; do"
        " timeout 1 head -c 200M /dev/zero > $f; done 2>/dev/null; :"
    )
    engine = Path("/var/lib/docker/containers")
    is_near = os.access(engine, os.R_OK | os.X_OK)
    with responsive_host(), bench.start(_SMALL) as sandbox:
        started = time.time()
        sh(sandbox, flood, 20)
        logs = [path for path in engine.glob("*/*") if path.is_file()] if is_near else []
        for path in logs:
            info = os.stat(path)
            assert info.st_size < 32 * MIB or info.st_mtime < started, path
        assert out(sandbox, "echo usable") == "usable\n"


def many_cheap_things_at_once_are_held(bench: Bench) -> None:
    """What is counted per user of the host must not run out for others: pipes, sockets, watches."""
    pipes = "while (pipe $r[++$n], $w[$n]) { fcntl $w[$n], 1031, 1 << 20 } print $n; sleep 20"
    socks = "while (socket $s[++$n], 1, 1, 0) { } print $n; sleep 20"
    with responsive_host(), bench.start(_SMALL) as sandbox:
        for program in (pipes, socks):
            sh(sandbox, f"for n in $(seq 20); do perl -e '{program}' & done; wait", 2)
            r, w = os.pipe()
            os.write(w, b"x" * 65_536)
            os.close(r)
            os.close(w)
            assert out(sandbox, "echo usable") == "usable\n"


CASES = (
    a_fork_bomb_is_held,
    a_memory_bomb_is_held,
    memory_without_an_owner_is_held_too,
    a_disk_bomb_is_held,
    a_bomb_of_deleted_files_is_held,
    a_bomb_of_empty_files_is_held,
    a_bomb_of_shared_memory_files_is_held,
    holes_cost_nothing,
    a_descriptor_bomb_is_held,
    an_output_bomb_is_held,
    a_log_bomb_is_held,
    many_cheap_things_at_once_are_held,
)
