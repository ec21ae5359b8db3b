"""Sandboxes beside one another, what they have spent, and what a traced command did."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from sandbox.contracts import Limits, NetworkPolicy
from tests.sandbox.conformance_bench import MIB, Bench, content, living, out, perl, sh


def every_sandbox_is_fresh_and_alone(bench: Bench) -> None:
    backend = bench.backend
    image = backend.prepare(bench.spec())

    def visit(number: int) -> str:
        with backend.start(image, Limits(cpus=1), NetworkPolicy()) as sandbox:
            before = out(sandbox, "ls /app /tmp /dev/shm")
            sh(sandbox, f"echo {number} | tee /app/mine /tmp/mine /dev/shm/mine /app/data/one.txt")
            time.sleep(0.05)
            assert out(sandbox, "cat /app/mine /dev/shm/mine") == f"{number}\n" * 2
            return before

    with ThreadPoolExecutor(4) as pool:
        seen = set(pool.map(visit, range(8)))
    assert seen == {"/app:\ndata\n\n/dev/shm:\n\n/tmp:\n"}


_SEGMENT = "$i = shmget(4711, 100, 01600); shmwrite $i, 'left here', 0, 9"
_FIND_SEGMENT = "print defined shmget(4711, 100, 0) ? 'found' : 'none'"
_LISTEN = """
use IO::Socket::INET; use Socket;
$s = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => 8311) or die $!;
socket A, PF_UNIX, SOCK_STREAM, 0; bind A, sockaddr_un("\\0ratchet-test") or die $!; listen A, 5;
open F, '>', '/tmp/listens'; close F; sleep 300;
"""
_CONNECT = """
use IO::Socket::INET; use Socket;
print IO::Socket::INET->new(PeerAddr => '127.0.0.1:8311') ? 'tcp ' : '-';
socket A, PF_UNIX, SOCK_STREAM, 0; print connect(A, sockaddr_un("\\0ratchet-test")) ? 'unix' : '-';
"""


def two_at_once_do_not_see_each_other(bench: Bench) -> None:
    with bench.start(Limits(cpus=1)) as one, bench.start(Limits(cpus=1)) as two:
        sh(one, "setsid sleep 345 & echo secret | tee /tmp/secret /dev/shm/secret")
        assert len(living(one, "sleep 345")) == 1
        assert living(two, "sleep 345") == []
        assert sh(two, "ls /tmp/secret").exit_status != 0
        assert sh(two, "ls /dev/shm/secret").exit_status != 0
        sh(two, "hostname; kill -9 -1")
        two.kill_all()
        assert len(living(one, "sleep 345")) == 1


def two_at_once_cannot_talk(bench: Bench) -> None:
    with bench.start(Limits(cpus=1)) as one, bench.start(Limits(cpus=1)) as two:
        for sandbox in (one, two):
            assert perl(sandbox, _CONNECT).stdout == b"--"
        sh(
            one,
            f"setsid perl -e '{_LISTEN.replace(chr(39), chr(34))}' & "
            "until [ -e /tmp/listens ]; do sleep 0.05; done",
        )
        assert perl(one, _CONNECT).stdout == b"tcp unix"
        assert perl(two, _CONNECT).stdout == b"--"
        perl(one, _SEGMENT)
        assert (perl(one, _FIND_SEGMENT).stdout, perl(two, _FIND_SEGMENT).stdout) == (
            b"found",
            b"none",
        )


def what_one_spends_is_not_counted_for_another(bench: Bench) -> None:
    with bench.start(Limits(cpus=1)) as one, bench.start(Limits(cpus=1)) as two:
        perl(one, "$x = 'x'; $x x= 60 << 20; $n += $_ for 1..3_000_000")
        sh(two, "true")
        spent, idle = one.usage(), two.usage()
    assert (spent.peak_memory_bytes or 0) > 60 * MIB
    assert (idle.peak_memory_bytes or 0) < 40 * MIB
    assert (spent.cpu_seconds or 0) > (idle.cpu_seconds or 0)


def usage_is_counted(bench: Bench) -> None:
    program = "$x = 'x'; $x x= 80 << 20; $n += $_ for 1..3_000_000;"
    program += (
        "fork or do { sleep 2; exit } for 1..4; open F, '>', '/app/f'; print F 'y' x (5<<20);"
    )
    program += "close F; wait for 1..4"
    with bench.start() as sandbox:
        perl(sandbox, program)
        usage = sandbox.usage()
    assert 80 * MIB < (usage.peak_memory_bytes or 0) < 260 * MIB, usage
    assert 0.02 < (usage.cpu_seconds or 0) < 20
    assert 5 * MIB <= (usage.disk_bytes or 0) < 8 * MIB
    assert 5 <= (usage.peak_processes or 0) <= 12
    assert (usage.oom_kills, usage.is_disk_full) == (0, False)
    after = sandbox.usage()
    assert after.peak_memory_bytes == usage.peak_memory_bytes  # known after the end


def a_trace_names_programs_and_files_or_says_why_not(bench: Bench) -> None:
    script = "cat data/one.txt nothing > new; "
    script += "(cd data && perl -e 'open F, \"run.sh\"; <F>'); rm data/one.txt"
    with bench.start() as sandbox:
        assert sandbox.trace() is None
        sh(sandbox, script, is_traced=True)
        trace = sandbox.trace()
        assert content(sandbox, "/app/data") == {"run.sh": b"#!/bin/sh\n"}
    if bench.kind == "docker":  # its images are traced under bubblewrap
        assert trace is None or (not trace.is_complete and trace.note)
        return
    assert trace is not None
    assert trace.is_complete, trace.note
    assert {"/app/data/one.txt", "/app/data/run.sh"} <= set(trace.read)
    assert "/app/nothing" not in trace.read
    assert (trace.written, trace.deleted) == (("/app/new",), ("/app/data/one.txt",))
    assert trace.programs == ("cat", "perl", "rm")
    assert trace.commands[0] == ("cat", "data/one.txt", "nothing")


CHECKS = (
    every_sandbox_is_fresh_and_alone,
    two_at_once_do_not_see_each_other,
    two_at_once_cannot_talk,
    what_one_spends_is_not_counted_for_another,
    usage_is_counted,
    a_trace_names_programs_and_files_or_says_why_not,
)
