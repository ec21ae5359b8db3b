"""Looks at the disk of running containers, where the engine knows no quota."""

from __future__ import annotations

import threading
import time
from typing import Protocol

from sandbox.backends.docker_engine import Container
from sandbox.errors import SandboxError

_PERIOD_SECONDS = 0.25


class Watched(Protocol):
    """Something that is looked at."""

    def look_at_disk(self) -> bool:
        """Act when the limit is passed; whether it was so."""
        ...


def disk_bytes(container: Container) -> int | None:
    """What a container has written to its own layer, in bytes."""
    size = container.inspect(has_size=True).get("SizeRw")
    return int(size) if size is not None else 0


class Watch:
    """One thread for all sandboxes of a back-end, started when the first one is added."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[Watched, float]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, sandbox: Watched) -> None:
        """Begin to look at it."""
        with self._lock:
            self._watched[id(sandbox)] = (sandbox, time.monotonic())
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="disk watch", daemon=True)
                self._thread.start()
        self._wake.set()

    def remove(self, sandbox: Watched) -> None:
        """Look at it no more."""
        with self._lock:
            self._watched.pop(id(sandbox), None)

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake.set()

    def _run(self) -> None:
        pause = _PERIOD_SECONDS
        while not self._is_closed:
            with self._lock:
                now = time.monotonic()
                due = [s for s, since in self._watched.values() if now - since >= _PERIOD_SECONDS]
                is_idle = not self._watched
            if is_idle:
                self._wake.clear()
                self._wake.wait(1.0)
                continue
            started = time.monotonic()
            for sandbox in due:
                try:
                    if sandbox.look_at_disk():
                        self.remove(sandbox)
                except SandboxError:
                    self.remove(sandbox)  # it is gone; the command's own end says why
            # A tree that takes long to measure is measured less often.
            pause = max(_PERIOD_SECONDS, 4 * (time.monotonic() - started))
            time.sleep(pause)
