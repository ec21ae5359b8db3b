"""A counting semaphore over all processes of a machine: how many sandboxes run at once.

Each slot is a file lock, which the kernel lets go of whatever happens to its holder. Waiters queue
at a turnstile, so that only one of them looks for a free slot at a time.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

_LOOK_SECONDS = 0.004


class Slot:
    """One held place."""

    def __init__(self, number: int, fd: int) -> None:
        self.number = number
        self._fd = fd

    def release(self) -> None:
        """Let the next one in. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Slots:
    """`count` places in a folder that all processes of one installation share."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        folder.mkdir(parents=True, exist_ok=True)

    def acquire(self) -> Slot:
        """Wait for a free place and take it."""
        turnstile = self._open("turnstile")
        try:
            fcntl.flock(turnstile, fcntl.LOCK_EX)
            while True:
                slot = self._try_all()
                if slot is not None:
                    return slot
                time.sleep(_LOOK_SECONDS)
        finally:
            os.close(turnstile)

    def _try_all(self) -> Slot | None:
        for number in range(self.count):
            fd = self._open(f"slot-{number}")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                continue
            return Slot(number, fd)
        return None

    def _open(self, name: str) -> int:
        return os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
