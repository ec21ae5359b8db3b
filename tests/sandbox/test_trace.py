"""A trace is complete, or says that it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox.conformance import Bench, sh

_ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.bubblewrap


def test_all_children_are_followed(bench: Bench) -> None:
    script = (
        "python3 -c 'import os; os.system(\"sort data/one.txt; :\")'\n"
        "cd data; ./run.sh; cat ../data/../data/one.txt; exec 3<one.txt; (cat one.txt) & wait\n"
    )
    with bench.start() as sandbox:
        sh(sandbox, script, is_traced=True)
        trace = sandbox.trace()
    assert trace is not None
    assert trace.is_complete, trace.note
    assert trace.programs == ("python3", "sh", "sort", "run.sh", "cat")
    assert {"/app/data/one.txt", "/app/data/run.sh"} <= set(trace.read)
    assert ("sort", "data/one.txt") in trace.commands


def test_what_only_writes_is_not_read(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "echo a > new; echo b >> new; echo c > data/one.txt", is_traced=True)
        trace = sandbox.trace()
    assert trace is not None
    assert trace.written == ("/app/data/one.txt", "/app/new")
    assert not {"/app/new", "/app/data/one.txt"} & set(trace.read)


def test_a_folder_that_was_removed_and_made_again(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "rm -r data; mkdir data; echo > data/other", is_traced=True)
        trace = sandbox.trace()
    assert trace is not None
    assert trace.written == ("/app/data/other",)
    assert trace.deleted == ("/app/data/one.txt", "/app/data/run.sh")


def test_commands_are_limited_in_number_and_length(bench: Bench) -> None:
    script = "for n in $(seq 520); do /bin/true; done; /bin/true $(seq -s x 1 999)"
    with bench.start() as sandbox:
        sh(sandbox, script, is_traced=True)
        trace = sandbox.trace()
    assert trace is not None
    assert len(trace.commands) == 500
    assert max(len(word) for words in trace.commands for word in words) <= 200


_DEAF = """
import ctypes, json, pathlib, struct, sys, tempfile
from sandbox.warden import kernel
allow = (ctypes.c_char * 8).from_buffer_copy(struct.pack('=HBBI', 6, 0, 0, 0x7FFF0000))
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.seccomp(allow, 8)  # there can be only one listener: ours is taken
from sandbox.backends.bubblewrap import BubblewrapBackend
from tests.sandbox.conformance import Bench, sh
with tempfile.TemporaryDirectory() as home:
    backend = BubblewrapBackend(pathlib.Path(home, 'r'), pathlib.Path(home, 'c'))
    with Bench(lambda _script: backend).start() as sandbox:
        result = sh(sandbox, 'cat data/one.txt > new', is_traced=True)
        trace = sandbox.trace()
    backend.close()
print(json.dumps([result.exit_status, trace.is_complete, trace.note, trace.written]))
"""


def test_without_a_listener_the_command_runs_and_the_trace_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _DEAF],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, is_complete, note, written = json.loads(done.stdout)
    assert (status, is_complete, written) == (0, False, ["/app/new"])
    assert "could not be followed" in note


def test_a_whole_folder_that_is_gone_is_told_file_by_file(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "rm -r data; mv /etc/hosts /etc/hosts.old", is_traced=True)
        trace = sandbox.trace()
    assert trace is not None
    assert trace.written == ("/etc/hosts.old",)
    assert trace.deleted == ("/app/data/one.txt", "/app/data/run.sh", "/etc/hosts")
