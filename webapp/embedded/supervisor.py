"""Web, workers and beat as child processes of one process, for one machine.

    with Supervisor(worker_parts(2), write=print):
        …                           # jobs sent now are done by real worker processes

A part that dies is started again. Leaving the block ends every part, and everything that a part
started, within seconds. Should this process be killed, its parts notice and end by themselves.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Self

from webapp.embedded.child import PARENT
from webapp.embedded.errors import EmbeddedUnavailable

GRACE_SECONDS = 5.0  # from SIGTERM to SIGKILL
HEALTHY_SECONDS = 10.0  # a part that lived so long did start
ATTEMPTS = 4  # starts in a row that may fail before we give up
PAUSE_CAP_SECONDS = 10.0
TICK_SECONDS = 0.1
MARKER = "RATCHET_SUPERVISOR"
"""In the environment of every descendant, so that leftovers can be told from strangers."""
_PROJECT = Path(__file__).resolve().parents[2]
_CELERY_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass(frozen=True)
class Part:
    """One child process: its name in the log, and the arguments of `webapp.embedded.child`.

    `listener` is handed down, and so stays open for as long as the part may be started again.
    `hidden` names variables that the part never sees, not even in `/proc`.
    """

    name: str
    arguments: tuple[str, ...]
    listener: socket.socket | None = None
    hidden: frozenset[str] = frozenset()


def worker_parts(count: int, hidden: Iterable[str] = ()) -> list[Part]:
    """`count` workers, one that tends (never busy with long work), and beat.

    Only the workers see the `hidden` variables: the other two ask no model.

    Each worker does one job at a time, in a thread: killing a pool's child process can wedge its
    parent with a broker made of files.
    """
    solo = ("--pool", "threads", "--concurrency", "1", "--loglevel", "INFO", *_CELERY_QUIET)
    parts = [
        Part(f"worker{n}", ("worker", "-n", f"worker{n}@%h", "-Q", "evolution,sandbox", *solo))
        for n in range(1, count + 1)
    ]
    unseen = frozenset(hidden)
    tender = ("worker", "-n", "tender@%h", "-Q", "default", *solo)
    beat = ("beat", "--loglevel", "WARNING", "--pidfile=")
    return [
        *parts,
        Part("tender", tender, hidden=unseen),
        Part("beat", beat, hidden=unseen),
    ]


def web_part(listener: socket.socket, hidden: Iterable[str] = ()) -> Part:
    """The web process, on a socket that `listen` opened, without the `hidden` variables."""
    return Part("web", ("web", str(listener.fileno())), listener, frozenset(hidden))


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises EmbeddedUnavailable with the remedy."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EmbeddedUnavailable(
                f"port {port} of {host} is taken: end what uses it, or choose another with --port"
            ) from error
        raise EmbeddedUnavailable(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


@dataclass
class _Running:
    part: Part
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    start_again_at: float = 0.0
    readers: list[threading.Thread] = field(default_factory=list)


class Supervisor:
    """Starts the parts, keeps them going, ends them. A context manager."""

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        write: Callable[[str], object],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`write` gets each line that a part prints, with the part's name in front.

        `environment` is what the parts see, by default our own.
        """
        self._environment = environment
        self._running = [_Running(part) for part in parts]
        self._write = write
        self._width = max((len(part.name) for part in parts), default=0)
        self._marker = uuid.uuid4().hex
        self._is_ending, self._is_quiet, self._is_over = (threading.Event() for _ in range(3))
        self._failure = ""
        self._monitor = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._old_handlers: dict[int, object] = {}

    @property
    def failure(self) -> str:
        """Why we gave up on a part; empty while all is well."""
        return self._failure

    def pids(self) -> dict[str, int]:
        """The process id of each part that runs now, by name."""
        running = [(one.part.name, one.process) for one in self._running]
        return {name: process.pid for name, process in running if process is not None}

    def wait(self) -> None:
        """Return when told to end (SIGINT, SIGTERM) or when a part cannot be kept running."""
        with contextlib.suppress(KeyboardInterrupt):
            while not self._is_ending.wait(0.5):
                pass

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._old_handlers[number] = signal.signal(number, _interrupt)
        self._monitor.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in self._old_handlers:
            signal.signal(number, signal.SIG_IGN)  # ending is what we do already
        try:
            self.stop()
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() gave us

    def stop(self) -> None:
        """End all parts: SIGTERM, then SIGKILL for them and whatever they left behind."""
        self._is_ending.set()
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C skips the patience
            if self._monitor.is_alive():
                self._is_quiet.wait()
            self._signal_all(signal.SIGTERM)
            deadline = time.monotonic() + GRACE_SECONDS
            for process in self._processes():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
        self._signal_all(signal.SIGKILL)
        for process in self._processes():
            process.wait()
        _end_marked(self._marker)
        self._is_over.set()
        for one in self._running:
            for reader in one.readers:
                reader.join(1.0)

    def _processes(self) -> Iterator[subprocess.Popen[bytes]]:
        for one in self._running:
            if one.process is not None:
                yield one.process

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._processes():
            if process.poll() is None:
                process.send_signal(number)

    def _watch(self) -> None:
        """The monitor's thread. It starts the parts too: they are bound to the starting thread."""
        while not self._is_ending.is_set():
            for one in self._running:
                self._keep_running(one)
            if self._failure:
                self._is_ending.set()
            self._is_ending.wait(TICK_SECONDS)
        self._is_quiet.set()  # no more starts to come
        self._is_over.wait()  # the kernel takes the end of this thread for the end of the parent

    def _keep_running(self, one: _Running) -> None:
        now = time.monotonic()
        if one.process is None or one.process.returncode is not None:
            if now >= one.start_again_at:
                self._start(one)
            return
        status = one.process.poll()
        if status is None:
            return
        one.failures = 1 if now - one.started_at > HEALTHY_SECONDS else one.failures + 1
        if one.failures >= ATTEMPTS:
            self._failure = f"{one.part.name} does not stay up (status {status}); see its lines"
            return
        pause = min(2.0 ** (one.failures - 1) / 2, PAUSE_CAP_SECONDS)
        one.start_again_at = now + pause
        self._say(one, f"ended with status {status}, starting it again in {pause:.1f} s")

    def _start(self, one: _Running) -> None:
        marks = {MARKER: self._marker, PARENT: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
        seen = self._environment or os.environ
        passed = {name: seen[name] for name in seen if name not in one.part.hidden}
        one.started_at = time.monotonic()
        one.process = subprocess.Popen(
            [sys.executable, "-m", "webapp.embedded.child", *one.part.arguments],
            cwd=_PROJECT,
            env={**passed, **marks},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=() if one.part.listener is None else (one.part.listener.fileno(),),
            start_new_session=True,  # Ctrl-C is ours; we tell the parts in order
        )
        assert one.process.stdout is not None
        reader = threading.Thread(target=self._pump, args=(one, one.process.stdout), daemon=True)
        reader.start()
        one.readers = [reader]

    def _pump(self, one: _Running, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._say(one, line.decode(errors="replace").rstrip())

    def _say(self, one: _Running, text: str) -> None:
        self._write(f"{one.part.name:<{self._width}} | {text}")


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_marked(marker: str) -> None:
    """Kill what the parts started and left behind, wherever it hides in the process tree."""
    deadline = time.monotonic() + GRACE_SECONDS
    while pids := _marked(marker):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() >= deadline:
            return
        time.sleep(0.02)


def _marked(marker: str) -> list[int]:
    needle = f"{MARKER}={marker}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
