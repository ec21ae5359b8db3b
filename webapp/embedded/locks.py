"""Advisory file locks that end with their holder, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class FileLock:
    """One open lock file. A fork shares its locks; any end of the process frees them."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_exclusive(self) -> bool:
        """Take the lock for us alone. On False a lock that we held before may be lost."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take the lock together with others. On False nothing is held."""
        return self._try(fcntl.LOCK_SH)

    def wait_exclusive(self, seconds: float) -> bool:
        """Like `try_exclusive`, for at most so long."""
        return self._wait(fcntl.LOCK_EX, seconds)

    def wait_shared(self, seconds: float) -> bool:
        """Like `try_shared`, for at most so long."""
        return self._wait(fcntl.LOCK_SH, seconds)

    def release(self) -> None:
        """Hold nothing; the file stays open for another try."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release and close. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self._fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(self, operation: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self._try(operation):
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        return True
