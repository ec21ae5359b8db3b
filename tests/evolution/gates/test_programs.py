"""What programs ask of the machine that they run on is told from words that only look like it."""

from __future__ import annotations

import pytest

from evolution.gates.programs import asks_host_name, asks_user_id, is_program
from sandbox.contracts import SandboxFile


def asked(text: str, path: str) -> str:
    files = [SandboxFile(path, text.encode())]
    asks = (("host", asks_host_name(files)), ("user", asks_user_id(files)))
    return " ".join(name for name, is_asked in asks if is_asked)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("hostname > x", "host"),
        ('echo "$(uname -n)"', "host"),
        ("uname -a", "host"),
        ("uname -m", ""),
        ("echo $HOSTNAME", "host"),
        ("hostname=web1", ""),
        ("# hostname", ""),
        ('if [ "$(id -u)" = 0 ]; then', "user"),
        ("[ $EUID = 0 ]", "user"),
        ("stat -c %u x", "user"),
        ("stat -c %s x", ""),
        ("awk '{ id = $1; print id }'", ""),
        ("whoami", "user"),
        ("id=3", ""),
    ],
)
def test_scripts(text: str, what: str) -> None:
    assert asked(text, "solution/solve.sh") == what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("socket.gethostname()", "host"),
        ("subprocess.run(['hostname'])", "host"),
        ("platform.node()", "host"),
        ("os.getuid()", "user"),
        ("check_output(['id', '-u'])", "user"),
        ("fields = ['id', 'hostname']", ""),
        ("row['hostname'], row['id']", ""),
    ],
)
def test_python(text: str, what: str) -> None:
    assert asked(text, "tests/checks.py") == what


def test_data_asks_nothing() -> None:
    assert asked("hostname\nid -u\n", "tests/expected.txt") == ""


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        ("a/Makefile", b"all:", True),
        ("run.py", b"", True),
        ("run", b"#!/bin/sh\n", True),
        ("a.json", b"{}", False),
        ("a.csv", b"", False),
    ],
)
def test_programs_are_told_by_name_or_first_bytes(path: str, data: bytes, said: bool) -> None:
    assert is_program(path, data) is said
