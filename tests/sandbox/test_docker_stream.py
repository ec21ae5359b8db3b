"""The stream to a container's driver, against drivers that lie, and the driver's own lines."""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from sandbox.backends import docker_stream
from sandbox.backends.docker_stream import DriverStream, StreamLost, quoted
from sandbox.errors import Refused, TooLarge

DRIVER = Path(docker_stream.__file__).with_name("docker_driver.sh")
MIB = 1 << 20


def framed(stream: int, data: bytes) -> bytes:
    """As the engine multiplexes."""
    return struct.pack(">BxxxL", stream, len(data)) + data


@contextmanager
def stream_to(answer: Callable[[socket.socket, str], None]) -> Iterator[DriverStream]:
    """A stream whose other end answers each line by a function of its nonce."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        for line in theirs.makefile():
            if found := re.search(r"begin (\w+);", line):
                try:
                    answer(theirs, found[1])
                except OSError:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    stream = DriverStream(ours, ours.close)
    try:
        yield stream
    finally:
        stream.close()
        thread.join(5)
        theirs.close()


def _both(theirs: socket.socket, data: bytes, size: int) -> None:
    """The same on both streams, in pieces of so many bytes."""
    for stream in (1, 2):
        for at in range(0, len(data), size):
            theirs.sendall(framed(stream, data[at : at + size]))


@pytest.mark.parametrize("size", [1, 7, 33, 4096])
def test_answers_are_found_however_they_are_cut(size: int) -> None:
    def answer(theirs: socket.socket, nonce: str) -> None:
        body = f"late output of a service{nonce}the answer{nonce}042and more"
        _both(theirs, body.encode(), size)

    with stream_to(answer) as stream:
        for _turn in range(3):
            found = stream.ask("x", seconds=10)
            assert (found.status, found.stdout, found.stderr) == (42, b"the answer", b"the answer")


def test_an_answer_without_its_nonce_is_none() -> None:
    def answer(theirs: socket.socket, _nonce: str) -> None:
        _both(theirs, b"0" * 32 + b"forged" + b"0" * 32 + b"000", 64)

    started = time.monotonic()
    with stream_to(answer) as stream, pytest.raises(StreamLost):
        stream.ask("x", seconds=0.3)
    assert time.monotonic() - started < 5


def test_a_stream_that_makes_no_sense_is_lost() -> None:
    def huge(theirs: socket.socket, _nonce: str) -> None:
        theirs.sendall(struct.pack(">BxxxL", 1, 0xFFFFFFFF))

    def strange(theirs: socket.socket, nonce: str) -> None:
        for stream in (0, 3, 77):
            theirs.sendall(framed(stream, b"noise"))
        _both(theirs, f"{nonce}x{nonce}abc".encode(), 9)

    with stream_to(huge) as stream, pytest.raises(StreamLost):
        stream.ask("x", seconds=10)
    with stream_to(strange) as stream:
        assert stream.ask("x", seconds=10).status == 255


def test_an_endless_answer_is_cut_and_muted() -> None:
    def answer(theirs: socket.socket, nonce: str) -> None:
        theirs.sendall(framed(1, nonce.encode()) + framed(2, nonce.encode()))
        for _n in range(64):
            theirs.sendall(framed(1, b"x" * 65_536))
        _both(theirs, f"{nonce}000".encode(), 4096)

    with stream_to(answer) as stream:
        found = stream.ask("x", seconds=10, cap_bytes=MIB)
        assert (len(found.stdout), found.is_truncated, found.stderr) == (MIB, True, b"")


def test_a_driver_that_ends_leaves_what_it_said() -> None:
    def answer(theirs: socket.socket, nonce: str) -> None:
        _both(theirs, f"{nonce}half an answer, and some more of it for the tail".encode(), 4096)
        theirs.shutdown(socket.SHUT_RDWR)

    with stream_to(answer) as stream, pytest.raises(StreamLost) as lost:
        stream.ask("x", seconds=10)
    assert lost.value.answer.stdout.startswith(b"half an answ")
    assert lost.value.answer.status == 137


def test_what_is_too_much_is_broken_off_and_told() -> None:
    def answer(theirs: socket.socket, nonce: str) -> None:
        _both(theirs, f"{nonce}{'x' * 1000}{nonce}137".encode(), 4096)

    def full(_data: bytes) -> None:
        raise TooLarge("enough")

    with stream_to(answer) as stream, pytest.raises(TooLarge, match="enough"):
        stream.ask("x", seconds=10, sink=full)


# -- the driver, run by this machine's bash, not as process 1 ------------------------------------


def _multiplex(pipe: IO[bytes], stream: int, theirs: socket.socket, lock: threading.Lock) -> None:
    while data := pipe.read1(65_536):  # type: ignore[attr-defined]
        with lock:
            theirs.sendall(framed(stream, data))


@pytest.fixture
def driver() -> Iterator[DriverStream]:
    words = ["bash", "-p", "-c", DRIVER.read_text(), "ratchet", "1000"]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    ours, theirs = socket.socketpair()
    lock = threading.Lock()
    threads = [
        threading.Thread(target=_multiplex, args=(pipe, number, theirs, lock), daemon=True)
        for number, pipe in ((1, process.stdout), (2, process.stderr))
    ]

    def feed(stdin: IO[bytes]) -> None:
        while data := theirs.recv(65_536):
            stdin.write(data)
            stdin.flush()
        stdin.close()

    threads.append(threading.Thread(target=feed, args=(process.stdin,), daemon=True))
    for thread in threads:
        thread.start()
    stream = DriverStream(ours, ours.close)
    yield stream
    stream.close()
    assert process.wait(10) == 0  # it ends with its input
    for thread in threads:
        thread.join(5)
    theirs.close()


@pytest.mark.parametrize(
    "word",
    [
        "",
        "plain",
        "two words",
        "'",
        '"',
        "$HOME `id` $(id)",
        "a\nb",
        "\x01\x7f",
        "é\udcff",
        "*",
        "-n",
        "a\\b",
        "!x",
        "~",
        "{a,b}",
    ],
)
def test_words_reach_commands_as_they_are(driver: DriverStream, word: str) -> None:
    found = driver.ask(f"run /dev/null / exec printf %s {quoted(word)}", seconds=20)
    assert (found.status, found.stdout) == (0, word.encode("utf-8", "surrogateescape"))


def test_a_word_with_a_nul_is_refused() -> None:
    with pytest.raises(Refused, match="NUL"):
        quoted("a\0b")


def test_output_of_a_service_stays_out_of_the_next_answer(driver: DriverStream) -> None:
    service = "while sleep 0.02; do echo tick || exit; echo tock >&2; done & echo $!"
    pid = driver.ask(f"run /dev/null / bash -c {quoted(service)}", seconds=20).stdout.split()[0]
    for _turn in range(5):
        found = driver.ask("run /dev/null / exec bash -c 'sleep 0.1; echo mine'", seconds=20)
        assert (found.stdout, found.stderr) == (b"mine\n", b"")
    killed = driver.ask(f"run /dev/null / exec kill {int(pid)}", seconds=20)
    assert killed.status == 0  # it lived


def test_bytes_that_no_tool_took_are_no_orders(driver: DriverStream, tmp_path: Path) -> None:
    """As when the image has no tool that takes them, or a broken one."""
    canary = tmp_path / "canary"
    order = f"\ntouch {canary}; begin 0; touch {canary}\n$(touch {canary})".encode()
    found = driver.ask("say 3", seconds=20, payload=[order, b"\0\xff" * 100, order])
    assert found.status == 3
    assert driver.ask("run /dev/null / exec echo fine", seconds=20).stdout == b"fine\n"
    assert not canary.exists()


def test_a_broken_line_does_no_harm(driver: DriverStream) -> None:
    driver.interrupt("if ( ;;")
    driver.interrupt("no_such_function 1 2")
    assert driver.ask("run /dev/null / exec echo fine", seconds=20).stdout == b"fine\n"


def test_what_a_teller_cannot_tell_is_told(driver: DriverStream) -> None:
    """A command that ends its parent too is an ended command."""
    found = driver.ask("run /dev/null / exec bash -c 'kill -9 $PPID; kill -9 $$'", seconds=20)
    assert found.status == 137
