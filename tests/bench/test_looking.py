"""What finds, breaks and compares: the proxy, processes, leftovers."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench import processes
from bench.faults import Turnstile
from bench.leftovers import Held, look
from bench.proxy import EngineProxy


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[EngineProxy]:
    """Before a server that sends back what it gets."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()

    def serve() -> None:
        with suppress(OSError):
            while True:
                sock, _address = listener.accept()
                threading.Thread(target=echo, args=(sock,), daemon=True).start()

    def echo(sock: socket.socket) -> None:
        with suppress(OSError), sock:
            while data := sock.recv(4096):
                sock.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    with EngineProxy(tmp_path / "s") as proxy:
        yield proxy
    listener.close()


def _connected(proxy: EngineProxy) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(str(proxy.path))
    return sock


def _said(sock: socket.socket, word: bytes) -> bytes:
    try:
        sock.sendall(word)
        return sock.recv(100)
    except ConnectionError:
        return b""


def test_a_proxy_breaks_the_connection_it_was_told_to(proxy: EngineProxy) -> None:
    with _connected(proxy) as one, _connected(proxy) as two:
        assert (_said(one, b"a"), _said(two, b"b")) == (b"a", b"b")
        proxy.break_at(3)
        assert _said(one, b"c") == b"c"  # two pieces: there and back
        assert _said(one, b"d") == b""
        assert _said(two, b"e") == b"e"
        assert proxy.broken == 1


def test_a_proxy_that_is_gone_comes_back_when_disarmed(proxy: EngineProxy) -> None:
    with _connected(proxy) as one, _connected(proxy) as two:
        assert _said(two, b"a") == b"a"
        proxy.break_at(1, is_gone_after=True)
        assert _said(one, b"b") == b""
        assert _said(two, b"c") == b""
        with _connected(proxy) as three:
            assert _said(three, b"d") == b""
        proxy.disarm()
        with _connected(proxy) as four:
            assert _said(four, b"e") == b"e"


def test_processes_are_found_by_environment_and_tree() -> None:
    child = subprocess.Popen(["bash", "-c", "sleep 60; :"], env={"PATH": "/bin", "MARK": "m-17"})
    try:
        found = processes.waited_for(
            lambda: next(
                (
                    pid
                    for pid in processes.pids()
                    if processes.parent_of(pid) == child.pid
                    and processes.has_in_environment(pid, "MARK=m-17")
                ),
                None,
            ),
            10,
        )
        assert found is not None
        assert processes.tree_below(child.pid) == [child.pid, found]
        assert processes.above(found, lambda pid: pid == child.pid) == child.pid
        assert processes.command_line(found) == "sleep 60"
        assert processes.container_of(found) is None
        assert set(processes.tree_below(os.getpid())) >= {child.pid, found}
    finally:
        child.kill()
        child.wait()
        if found:
            os.kill(found, 9)


def test_leftovers_are_what_was_not_there_before(tmp_path: Path) -> None:
    before = look(tmp_path)
    (tmp_path / "incoming" / "half").mkdir(parents=True)
    (tmp_path / "layers" / "finished").mkdir(parents=True)
    left = look(tmp_path).beyond(before, [str(tmp_path)])
    assert left == {"folders": [f"{tmp_path}/incoming", f"{tmp_path}/incoming/half"]}
    nothing = frozenset[str]()
    empty = Held(*[nothing] * 7)
    assert Held(*[frozenset({"x 1"})] * 7).beyond(empty, ["2"]) == {}
    assert len(Held(*[frozenset({"x 1"})] * 7).beyond(empty)) == 7


def test_who_is_alone_is_alone() -> None:
    turnstile, inside, seen = Turnstile(), [0], []
    lock = threading.Lock()

    def enter(is_alone: bool) -> None:
        with turnstile.alone() if is_alone else turnstile.shared():
            with lock:
                inside[0] += 1
            threading.Event().wait(0.01)
            seen.append((is_alone, inside[0]))
            with lock:
                inside[0] -= 1

    threads = [threading.Thread(target=enter, args=(n % 5 == 0,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 20
    assert {count for is_alone, count in seen if is_alone} == {1}
