"""Limits strike, are named, and leave the sandbox usable. Functions of a `Bench`."""

from __future__ import annotations

import time

from sandbox.contracts import Limits
from tests.sandbox.conformance_bench import MIB, Bench, out, perl, sh


def a_memory_hog_is_ended_and_named(bench: Bench) -> None:
    with bench.start(Limits(memory_bytes=100 * MIB)) as sandbox:
        result = perl(sandbox, "while (1) { $x = 'x'; $x x= 8 << 20; push @x, $x }", seconds=30)
        assert (result.exit_status, result.timed_out) == (137, False)
        usage = sandbox.usage()
        assert usage.oom_kills >= 1
        assert usage.struck == ("memory",)
        assert out(sandbox, "echo usable") == "usable\n"


def memory_of_many_processes_is_added_up(bench: Bench) -> None:
    program = "for (1..6) { fork or do { $x = 'x'; $x x= 30 << 20; sleep 3; exit } } wait for 1..6"
    with bench.start(Limits(memory_bytes=120 * MIB)) as sandbox:
        started = time.monotonic()
        perl(sandbox, program)
        assert sandbox.usage().oom_kills >= 1
        assert time.monotonic() - started < 20


def a_spike_between_two_samples_is_found(bench: Bench) -> None:
    program = "$x = 'x'; $x x= 60 << 20; undef $x"
    with bench.start(Limits(memory_bytes=40 * MIB)) as sandbox:
        perl(sandbox, program, seconds=30)
        assert sandbox.usage().oom_kills >= 1


def what_fits_is_left_alone(bench: Bench) -> None:
    with bench.start(Limits(memory_bytes=100 * MIB, disk_bytes=32 * MIB)) as sandbox:
        assert perl(sandbox, "$x = 'x'; $x x= 60 << 20", seconds=30).exit_status == 0
        assert sh(sandbox, "head -c 20M /dev/zero > /app/fits").exit_status == 0
        usage = sandbox.usage()
        assert (usage.oom_kills, usage.is_disk_full, usage.struck) == (0, False, ())


def a_full_disk_is_named(bench: Bench) -> None:
    with bench.start(Limits(disk_bytes=8 * MIB)) as sandbox:
        for folder in ("/app", "/tmp", "/usr/local", "/var/log"):
            result = sh(
                sandbox, f"head -c {20 * MIB} /dev/zero > {folder}/bomb; s=$?; sleep 0.3; exit $s"
            )
            assert result.exit_status != 0 or bench.is_disk_measured, folder
            assert sandbox.usage().is_disk_full
            assert sandbox.usage().struck == ("disk",)
            sh(sandbox, f"rm -f {folder}/bomb")
        assert bench.is_disk_measured or (sandbox.usage().disk_bytes or 0) <= 8 * MIB
        assert out(sandbox, "echo usable > /app/x; cat /app/x") == "usable\n"


def shared_memory_has_its_own_end(bench: Bench) -> None:
    with bench.start(Limits(disk_bytes=8 * MIB)) as sandbox:
        assert sh(sandbox, f"head -c {80 * MIB} /dev/zero > /dev/shm/bomb").exit_status != 0


def a_fork_bomb_is_held_and_named(bench: Bench) -> None:
    with bench.start(Limits(processes=40)) as sandbox:
        result = sh(sandbox, "for n in $(seq 60); do sleep 2 & done 2>/dev/null; wait", 4)
        usage = sandbox.usage()
        assert 30 <= (usage.peak_processes or 0) <= 60
        assert usage.struck == ("processes",)
        sandbox.kill_all()
        assert out(sandbox, "echo usable") == "usable\n"
        assert result.seconds < 20


def descriptors_end_where_asked(bench: Bench) -> None:
    program = "while (open my $f, '<', '/dev/null') { push @f, $f } print scalar @f"
    with bench.start(Limits(descriptors=64)) as sandbox:
        for user in bench.users:
            assert 50 <= int(perl(sandbox, program, user=user).stdout) <= 64
        assert out(sandbox, "ulimit -n; ulimit -Hn") == "64\n64\n"


def a_lack_of_descriptors_is_named(bench: Bench) -> None:
    program = "while (1) { open my $f, '<', '/dev/null' or (sleep(1), die $!); push @f, $f }"
    with bench.start(Limits(descriptors=64)) as sandbox:
        assert sandbox.usage().struck == ()
        assert perl(sandbox, program).exit_status != 0
        assert sandbox.usage().struck == ("descriptors",)


def a_flood_of_output_ends_in_time(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, "yes", 1)
        assert result.timed_out
        assert result.truncated
        assert result.seconds < 15


def one_cpu_is_one_cpu(bench: Bench) -> None:
    with bench.start(Limits(cpus=1)) as sandbox:
        assert out(sandbox, "nproc") == "1\n"
        spin = "($a, $b) = (time, 0); $b++ while time < $a + 3; @t = times; print $t[0] + $t[1]"
        spin_twice = f"for n in 1 2; do perl -e '{spin}; print \"\\n\"' & done; wait"
        spent = sum(float(word) for word in out(sandbox, spin_twice).split())
        assert spent < 5.5


def half_a_cpu_is_half_a_cpu(bench: Bench) -> None:
    with bench.start(Limits(cpus=0.5)) as sandbox:
        if getattr(sandbox, "notes", ()):
            assert "0.5" in " ".join(sandbox.notes)  # type: ignore[attr-defined]
            return
        spin = "$a = time + 4; 1 while time < $a; @t = times; print $t[0] + $t[1]"
        assert float(perl(sandbox, spin).stdout) < 3.2


CASES = (
    a_memory_hog_is_ended_and_named,
    memory_of_many_processes_is_added_up,
    a_spike_between_two_samples_is_found,
    what_fits_is_left_alone,
    a_full_disk_is_named,
    shared_memory_has_its_own_end,
    a_fork_bomb_is_held_and_named,
    descriptors_end_where_asked,
    a_lack_of_descriptors_is_named,
    a_flood_of_output_ends_in_time,
    one_cpu_is_one_cpu,
    half_a_cpu_is_half_a_cpu,
)
