"""Files of the sandbox, written, read and removed without following a link that it holds.

Everything goes from one folder's descriptor to the next. Since the warden is inside the sandbox's
mount namespace, even a followed link could not reach the host.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
from collections.abc import Callable, Iterator

from sandbox.warden.wire import Header

FIXED_TIME = 1_704_067_200
"""Modification time of every file that we put: 2024-01-01, so that no result depends on it."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_DEPTH = 200
_ENTRY_BYTES = 256
_FREE_ENTRIES = 4096
_COPY_BYTES = 1 << 22
# Links that a root file system has by itself; replacing them would break it.
_SYSTEM_LINKS = frozenset(
    ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/var/run", "/var/lock")
)


class TooMuch(OSError):
    """More than was allowed would be read."""


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise ValueError(f"not a plain path: {path!r}")
    return parts


def _enter(parent: int, name: str, path: str) -> int:
    """Open a folder below `parent`, making it, and replacing what is no folder."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError:
        if path in _SYSTEM_LINKS:
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.unlink(name, dir_fd=parent)
    os.mkdir(name, 0o755, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def _folder(parts: list[str]) -> int:
    current = os.open("/", _FOLDER)
    path = ""
    for part in parts:
        path = f"{path}/{part}"
        try:
            below = _enter(current, part, path)
        finally:
            os.close(current)
        current = below
    return current


def write(header: Header, payload: bytearray) -> None:
    """Put files under `at`; `owner` (uid, gid) and the folder itself come with the header."""
    view = memoryview(payload)
    offset = 0
    base = _parts(header["at"])
    opened: tuple[list[str], int] = (base, _folder(base))
    try:
        for entry in header["files"]:
            parts = _parts(entry["path"])
            where = [*base, *parts[:-1]]
            if where != opened[0]:
                os.close(opened[1])
                opened = ([], -1)
                opened = (where, _folder(where))
            data = view[offset : offset + entry["size"]]
            offset += entry["size"]
            _put(opened[1], parts[-1], entry, data)
    finally:
        if opened[1] >= 0:
            os.close(opened[1])


def _put(folder: int, name: str, entry: Header, data: memoryview) -> None:
    _remove_at(folder, name)
    owner = entry.get("owner")
    if entry["link"] is not None:
        os.symlink(entry["link"], name, dir_fd=folder)
        if owner:
            os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        done = 0
        while done < len(data):
            done += os.write(fd, data[done:])
        if owner:
            os.fchown(fd, *owner)
        os.fchmod(fd, entry["mode"] & 0o1777)
        os.utime(fd, (FIXED_TIME, FIXED_TIME))
    finally:
        os.close(fd)


def remove(path: str) -> None:
    """Remove what is at `path`; a missing one is no error. A path through a link is missing."""
    parts = _parts(path)
    if not parts:
        raise ValueError("the root stays")
    found = _find(parts[:-1])
    if found is None:
        return
    try:
        _remove_at(found, parts[-1])
    finally:
        os.close(found)


def _find(parts: list[str]) -> int | None:
    """A folder's descriptor, or None when it is missing or behind a link of the sandbox."""
    current = os.open("/", _FOLDER)
    path = ""
    for part in parts:
        path = f"{path}/{part}"
        flags = _FOLDER & ~os.O_NOFOLLOW if path in _SYSTEM_LINKS else _FOLDER
        try:
            below = os.open(part, flags, dir_fd=current)
        except OSError:
            return None
        finally:
            os.close(current)
        current = below
    return current


def _remove_at(folder: int, name: str) -> None:
    """Remove a name in a folder, with everything below it, however deep."""
    try:
        os.unlink(name, dir_fd=folder)
        return
    except FileNotFoundError:
        return
    except OSError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise
    top = os.open(name, _FOLDER, dir_fd=folder)
    try:
        while _empty(top, top, 0):
            pass
    finally:
        os.close(top)
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EBUSY:  # a mount point stays, empty
            raise


def _empty(folder: int, top: int, depth: int) -> bool:
    """Empty a folder; True when something deep was lifted to the top and waits there."""
    is_lifted = False
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
            continue
        except IsADirectoryError:
            pass
        if depth >= _MAX_DEPTH:
            os.rename(name, f".lifted-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
            is_lifted = True
            continue
        below = os.open(name, _FOLDER, dir_fd=folder)
        try:
            is_lifted |= _empty(below, top, depth + 1)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=folder)
    return is_lifted


# -- reading ----------------------------------------------------------------------------------


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
            while part := os.read(fd, _COPY_BYTES):
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
        parts = _parts(source["source"])
        folder = _find(parts[:-1])
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
        below = os.open(name, _FOLDER, dir_fd=folder)
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
    if depth > _MAX_DEPTH:
        raise TooMuch(f"folders are nested more than {_MAX_DEPTH} deep")
    for name in sorted(os.listdir(folder)):
        path = f"{head}{name}"
        if is_left_out(path):
            continue
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            yield path, name, folder
            continue
        below = os.open(name, _FOLDER, dir_fd=folder)
        try:
            yield from _walk(below, f"{path}/", is_left_out, depth + 1)
        finally:
            os.close(below)


def walk_all(folder: int) -> Iterator[tuple[str, str, int]]:
    """`_walk` over everything."""
    return _walk(folder, "", lambda _path: False)


# -- keeping a layer --------------------------------------------------------------------------


def store(upper: int, into: int, name: str) -> None:
    """Copy the writable layer into the cache as the folder `name`, whiteouts and owners too."""
    os.mkdir(name, 0o755, dir_fd=into)
    target = os.open(name, _FOLDER, dir_fd=into)
    try:
        _copy_folder(upper, target, 0)
    finally:
        os.close(target)


def _copy_folder(source: int, target: int, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise TooMuch(f"folders are nested more than {_MAX_DEPTH} deep")
    for name in os.listdir(source):
        info = os.stat(name, dir_fd=source, follow_symlinks=False)
        kind = stat.S_IFMT(info.st_mode)
        if kind == stat.S_IFDIR:
            os.mkdir(name, 0o700, dir_fd=target)
            one, two = (os.open(name, _FOLDER, dir_fd=fd) for fd in (source, target))
            try:
                _copy_folder(one, two, depth + 1)
                for attribute in os.listxattr(one):
                    if attribute.startswith("user.overlay."):
                        os.setxattr(two, attribute, os.getxattr(one, attribute))
            finally:
                os.close(one)
                os.close(two)
        elif kind == stat.S_IFREG:
            _copy_file(source, target, name)
        elif kind == stat.S_IFLNK:
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif kind == stat.S_IFCHR and info.st_rdev == 0:
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=target)
        elif kind == stat.S_IFIFO:
            os.mkfifo(name, 0o600, dir_fd=target)
        else:
            continue
        os.chown(name, info.st_uid, info.st_gid, dir_fd=target, follow_symlinks=False)
        if kind in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFIFO):
            os.chmod(name, stat.S_IMODE(info.st_mode), dir_fd=target)
            times = (info.st_atime_ns, info.st_mtime_ns)
            os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)


def _copy_file(source: int, target: int, name: str) -> None:
    one = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source)
    try:
        two = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)
        try:
            while os.sendfile(two, one, None, _COPY_BYTES):
                pass
        finally:
            os.close(two)
    finally:
        os.close(one)
