"""A terminal inside a sandbox behaves as a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandbox.backends.fake import FakeBackend
from sandbox.contracts import Limits, NetworkPolicy, SandboxFile
from sandbox.errors import Refused
from sandbox.interactive import open_terminal
from tests.sandbox.conformance import image_spec

_ROOT = Path(__file__).resolve().parents[2]
_CODE = """
import pathlib, sys
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import Limits, NetworkPolicy, SandboxFile
from sandbox.interactive import open_terminal
from tests.sandbox.conformance import image_spec
home = pathlib.Path(sys.argv[1])
backend = BubblewrapBackend(home / 'r', home / 'c')
folders = [('/solution', [SandboxFile('solve.sh', b'', 0o755)])]
status = open_terminal(
    backend, backend.prepare(image_spec()), Limits(), NetworkPolicy(), folders
)
raise SystemExit(status)
"""


@pytest.mark.bubblewrap
def test_a_person_types_into_a_sandbox(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _CODE, str(tmp_path)]
    process = subprocess.Popen(
        command, cwd=_ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = b""

    def wait_for(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 20
        while text not in seen:
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 4096)

    try:
        wait_for(b"# ")
        os.write(ours, b"tty; ls /solution; pwd\n")
        wait_for(b"/dev/pts/")
        wait_for(b"solve.sh")
        os.write(ours, b"sleep 100\n")
        time.sleep(0.3)
        os.write(ours, b"\x03")  # Ctrl-C reaches the sandbox, not us
        os.write(ours, b"echo after-$((1+1))\n")
        wait_for(b"after-2")
        os.write(ours, b"exit 7\n")
        assert process.wait(20) == 7
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_pipe_may_stand_in_for_the_person(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(tmp_path)],
        cwd=_ROOT,
        input=b"cat data/one.txt; exit 3\n",
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert b"one\r\n" in done.stdout


def test_a_back_end_without_terminals_says_so() -> None:
    backend = FakeBackend()
    image = backend.prepare(image_spec())
    with pytest.raises(Refused, match="no terminal"):
        open_terminal(backend, image, Limits(), NetworkPolicy(), [("/x", [SandboxFile("a", b"")])])
    assert backend.started == backend.stopped == 1
