"""What containers write, measured, since the engine has no quota on most file systems.

Where the engine's folders can be read (same machine, root) they are measured directly: what is
allocated, and 1 KiB for each name, so that a flood of empty files counts too. Elsewhere the engine
is asked, which knows the sizes of files in the container's own layer only.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from sandbox.errors import SandboxError

_PERIOD_SECONDS = 0.25
_NAME_BYTES = 1024
_BLOCK_BYTES = 512
_PATH_BYTES = 3500
_IN_MEMORY = ("/memfd:", "/dev/shm/", "/dev/zero", "/SYSV")  # noqa: S108
_UNKNOWN_BYTES = 1 << 62


def written_bytes(folders: Sequence[str], enough: int) -> int:
    """What these folders of the host hold, in bytes; any number above `enough` when it is more.

    Nothing is opened but folders, and no link is followed.
    """
    total = 0
    seen: set[int] = set()
    waiting = list(folders)
    while waiting and total <= enough:
        folder = waiting.pop()
        if len(folder) > _PATH_BYTES:
            total += _deep_bytes(folder)
            continue
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        with entries:
            for entry in entries:
                total += _NAME_BYTES
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if info.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                    if info.st_ino in seen:
                        continue
                    seen.add(info.st_ino)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += info.st_blocks * _BLOCK_BYTES
                if total > enough:
                    break
    return total


def _deep_bytes(folder: str) -> int:
    """The same for a folder whose paths grow too long to be named: `du` goes step by step."""
    du = shutil.which("du")
    if du is None:
        return _UNKNOWN_BYTES
    done = subprocess.run(
        [du, "-s", "-x", "-B1", "--", folder], capture_output=True, check=False, timeout=60
    )
    word = done.stdout.split(None, 1)[:1]
    return int(word[0]) if word and word[0].isdigit() else _UNKNOWN_BYTES


def held_bytes(first: int) -> int:
    """What is taken by files that were deleted and are open in a process beside the first one.

    The first is a container's, by its id on this machine. Files in memory count as memory.
    """
    total = 0
    seen: set[tuple[int, int]] = set()
    for pid in _members(first):
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in numbers:
            path = f"/proc/{pid}/fd/{number}"
            try:
                info = os.stat(path)
                if info.st_nlink or not stat.S_ISREG(info.st_mode):
                    continue
                is_memory = os.readlink(path).startswith(_IN_MEMORY)
            except OSError:
                continue
            if not is_memory and (info.st_dev, info.st_ino) not in seen:
                seen.add((info.st_dev, info.st_ino))
                total += info.st_blocks * _BLOCK_BYTES
    return total


def _members(first: int) -> list[str]:
    """The processes of a container: of its control group, version 1 or 2."""
    try:
        with open(f"/proc/{first}/cgroup", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    for _number, names, path in rows:
        if not names or "pids" in names.split(","):
            hierarchy = "/pids" if names else ""
            try:
                with open(
                    f"/sys/fs/cgroup{hierarchy}{path}/cgroup.procs", encoding="ascii"
                ) as file:
                    return file.read().split()
            except OSError:
                continue
    return []


class Watched(Protocol):
    """Something that is looked at."""

    def look_at_disk(self) -> bool:
        """Act when the limit is passed; whether it was so."""
        ...


class Watch:
    """One thread for all sandboxes of a back-end, started when the first one is added."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[Watched, float]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._is_closed = False

    def add(self, sandbox: Watched) -> None:
        """Begin to look at it."""
        with self._lock:
            self._watched[id(sandbox)] = (sandbox, time.monotonic())
            is_forked = self._pid != os.getpid()
            if self._thread is None or is_forked or not self._thread.is_alive():
                self._pid = os.getpid()
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
        while not self._is_closed:
            with self._lock:
                now = time.monotonic()
                due = [s for s, since in self._watched.values() if now - since >= _PERIOD_SECONDS]
                if not self._watched:
                    self._wake.clear()
            self._wake.wait()
            started = time.monotonic()
            for sandbox in due:
                try:
                    if sandbox.look_at_disk():
                        self.remove(sandbox)
                except (SandboxError, OSError, subprocess.SubprocessError):
                    continue  # perhaps it is gone, and the command's own end says why
            # A tree that takes long to measure is measured less often.
            time.sleep(max(_PERIOD_SECONDS, 4 * (time.monotonic() - started)))
