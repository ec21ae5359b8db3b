"""Files of the sandbox, read without following a link that it holds."""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.warden.files import FOLDER, MAX_DEPTH, find_folder, parts_of
from sandbox.warden.wire import Header

_ENTRY_BYTES = 256
_FREE_ENTRIES = 4096
_READ_BYTES = 1 << 22
_MOVED = frozenset((errno.ENOENT, errno.ELOOP, errno.ENOTDIR))
"""What is said of a name whose file is gone, or another kind of file by now."""


class TooMuch(OSError):
    """More than was allowed would be read."""


class TooDeep(TooMuch):
    """Folders are nested deeper than we go."""


class Reading:
    """Entries and bytes collected so far, and how much more may come."""

    def __init__(self, cap_bytes: int) -> None:
        self.entries: list[Header] = []
        self.data = bytearray()
        self.cap_bytes = cap_bytes
        self.room = cap_bytes

    def take(self, path: str, name: str, folder: int) -> bool:
        """Add a regular file or a link; anything special is passed over, and False."""
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            self._count(0)
            link = os.readlink(name, dir_fd=folder)
            self.entries.append({"path": path, "mode": 0o777, "link": link, "size": 0})
        elif stat.S_ISREG(info.st_mode):
            self._count(info.st_size)
            mode, size = stat.S_IMODE(info.st_mode) & 0o777, self._content(name, folder)
            self.entries.append({"path": path, "mode": mode, "link": None, "size": size})
        else:
            return False
        return True

    def take_folder(self, path: str, folder: int) -> None:
        """Add a folder in which nothing was found; its path ends in a slash."""
        self._count(0)
        mode = stat.S_IMODE(os.fstat(folder).st_mode) & 0o777
        self.entries.append({"path": path, "mode": mode, "link": None, "size": 0})

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
            _read_at(folder, parts, source, reading)
        finally:
            os.close(folder)
    return {"files": reading.entries}, reading.data


def _read_at(folder: int, parts: list[str], source: Header, reading: Reading) -> None:
    path = "/" + "/".join(parts)
    name = parts[-1] if parts else "."
    try:
        top = _Level(os.open(name, FOLDER, dir_fd=folder), path.rstrip("/") + "/", "")
    except FileNotFoundError:
        return
    except OSError:
        with _may_move():
            reading.take(path, name, folder)
        return
    _walk(top, source["exclude"], reading, has_folders=source["folders"])


@contextmanager
def _may_move() -> Iterator[None]:
    """What vanishes, or becomes another kind of file, while it is looked at is passed over."""
    try:
        yield
    except OSError as error:
        if error.errno not in _MOVED:
            raise


def is_excluded(path: str, patterns: list[str]) -> bool:
    """Whether a path below a source, or its last name, matches one of the patterns."""
    name = path.rsplit("/", 1)[-1]
    return any(
        fnmatch.fnmatchcase(path, pattern.strip("/"))
        or fnmatch.fnmatchcase(name, pattern.strip("/"))
        for pattern in patterns
    )


class _Level:
    """A folder on the way down: its descriptor, and the names in it that are still to come."""

    def __init__(self, fd: int, path: str, below: str) -> None:
        self.fd = fd
        self.path = path
        self.below = below
        self.names = sorted(os.listdir(fd), reverse=True)
        self.is_empty = True


def _walk(top: _Level, exclude: list[str], reading: Reading, *, has_folders: bool) -> None:
    """Take all that is no folder, in order of name; and folders that give nothing, when asked."""
    levels = [top]
    try:
        while levels:
            level = levels[-1]
            if not level.names:
                if has_folders and level.is_empty:
                    reading.take_folder(level.path, level.fd)
                    level.is_empty = False
                os.close(levels.pop().fd)
                if levels:
                    levels[-1].is_empty &= level.is_empty
                continue
            name = level.names.pop()
            if exclude and is_excluded(f"{level.below}{name}", exclude):
                continue
            with _may_move():
                info = os.stat(name, dir_fd=level.fd, follow_symlinks=False)
                if not stat.S_ISDIR(info.st_mode):
                    level.is_empty &= not reading.take(f"{level.path}{name}", name, level.fd)
                    continue
                if len(levels) > MAX_DEPTH:
                    raise TooDeep(f"folders are nested more than {MAX_DEPTH} deep")
                fd = os.open(name, FOLDER, dir_fd=level.fd)
                levels.append(_Level(fd, f"{level.path}{name}/", f"{level.below}{name}/"))
    finally:
        for level in levels:
            os.close(level.fd)
