"""Files of the sandbox, read without following a link that it holds."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Iterator

from sandbox.warden.files import FOLDER, MAX_DEPTH, find_folder, parts_of
from sandbox.warden.wire import Header

_ENTRY_BYTES = 256
_FREE_ENTRIES = 4096
_READ_BYTES = 1 << 22


class TooMuch(OSError):
    """More than was allowed would be read."""


class Reading:
    """Entries and bytes collected so far, and how much more may come."""

    def __init__(self, cap_bytes: int) -> None:
        self.entries: list[Header] = []
        self.data = bytearray()
        self.cap_bytes = cap_bytes
        self.room = cap_bytes

    def take(self, path: str, name: str, folder: int) -> None:
        """Add a regular file or a link; anything special is passed over."""
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            self._count(0)
            link = os.readlink(name, dir_fd=folder)
            self.entries.append({"path": path, "mode": 0o777, "link": link, "size": 0})
        elif stat.S_ISREG(info.st_mode):
            self._count(info.st_size)
            mode, size = stat.S_IMODE(info.st_mode) & 0o777, self._content(name, folder)
            self.entries.append({"path": path, "mode": mode, "link": None, "size": size})

    def _count(self, size: int) -> None:
        self.room -= size
        # A few names cost nothing, a flood of them does.
        if self.room < 0 or len(self.entries) > _FREE_ENTRIES + self.cap_bytes // _ENTRY_BYTES:
            raise TooMuch(f"more than {self.cap_bytes} bytes would be read")

    def _content(self, name: str, folder: int) -> int:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        before = len(self.data)
        try:
            while part := os.read(fd, _READ_BYTES):
                self.data += part
                if len(self.data) > self.cap_bytes:  # it grows while we read
                    raise TooMuch(f"more than {self.cap_bytes} bytes would be read")
        finally:
            os.close(fd)
        return len(self.data) - before


def read(sources: list[Header], cap_bytes: int) -> tuple[Header, bytearray]:
    """Read trees of regular files and links. Raises TooMuch."""
    reading = Reading(cap_bytes)
    for source in sources:
        parts = parts_of(source["source"])
        folder = find_folder(parts[:-1])
        if folder is None:
            continue
        try:
            _read_at(folder, parts, source["exclude"], reading)
        finally:
            os.close(folder)
    return {"files": reading.entries}, reading.data


def _read_at(folder: int, parts: list[str], exclude: list[str], reading: Reading) -> None:
    path = "/" + "/".join(parts)
    name = parts[-1] if parts else "."
    try:
        below = os.open(name, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError:
        reading.take(path, name, folder)
        return
    try:
        for where, entry, at in _walk(below, "", lambda p: is_excluded(p, exclude)):
            reading.take(f"{path.rstrip('/')}/{where}", entry, at)
    finally:
        os.close(below)


def is_excluded(path: str, patterns: list[str]) -> bool:
    """Whether a path below a source, or its last name, matches one of the patterns."""
    name = path.rsplit("/", 1)[-1]
    return any(
        fnmatch.fnmatchcase(path, pattern.strip("/"))
        or fnmatch.fnmatchcase(name, pattern.strip("/"))
        for pattern in patterns
    )


def _walk(
    folder: int, head: str, is_left_out: Callable[[str], bool], depth: int = 0
) -> Iterator[tuple[str, str, int]]:
    """(relative path, name, folder's descriptor) of all that is no folder, in order of name."""
    if depth > MAX_DEPTH:
        raise TooMuch(f"folders are nested more than {MAX_DEPTH} deep")
    for name in sorted(os.listdir(folder)):
        path = f"{head}{name}"
        if is_left_out(path):
            continue
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            yield path, name, folder
            continue
        below = os.open(name, FOLDER, dir_fd=folder)
        try:
            yield from _walk(below, f"{path}/", is_left_out, depth + 1)
        finally:
            os.close(below)
