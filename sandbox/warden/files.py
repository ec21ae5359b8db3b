"""Files of the sandbox, written and removed without following a link that it holds.

Everything goes from one folder's descriptor to the next. Since the warden is inside the sandbox's
mount namespace, even a followed link could not reach the host.
"""

from __future__ import annotations

import errno
import os
import stat

from sandbox.warden.wire import Header

FIXED_TIME = 1_704_067_200
"""Modification time of every file that we put: 2024-01-01, so that no result depends on it."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_DEPTH = 800
# Links that a root file system has by itself; replacing them would break it.
_SYSTEM_LINKS = frozenset(
    ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/var/run", "/var/lock")
)


def parts_of(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise ValueError(f"not a plain path: {path!r}")
    return parts


def _enter(parent: int, name: str, path: str) -> int:
    """Open a folder below `parent`, making it, and replacing what is no folder."""
    try:
        return os.open(name, FOLDER, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError:
        if path in _SYSTEM_LINKS:
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.unlink(name, dir_fd=parent)
    os.mkdir(name, 0o755, dir_fd=parent)
    return os.open(name, FOLDER, dir_fd=parent)


def _folder(parts: list[str]) -> int:
    current = os.open("/", FOLDER)
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
    base = parts_of(header["at"])
    opened: tuple[list[str], int] = (base, _folder(base))
    try:
        for entry in header["files"]:
            parts = parts_of(entry["path"])
            if entry["path"].endswith("/"):
                _put_folder([*base, *parts], entry)
                continue
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


def _put_folder(parts: list[str], entry: Header) -> None:
    fd = _folder(parts)
    try:
        if entry.get("owner"):
            os.fchown(fd, *entry["owner"])
        os.fchmod(fd, entry["mode"] & 0o1777)
    finally:
        os.close(fd)


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
    parts = parts_of(path)
    if not parts:
        raise ValueError("the root stays")
    found = find_folder(parts[:-1])
    if found is None:
        return
    try:
        _remove_at(found, parts[-1])
    finally:
        os.close(found)


def find_folder(parts: list[str]) -> int | None:
    """A folder's descriptor, or None when it is missing or behind a link of the sandbox."""
    current = os.open("/", FOLDER)
    path = ""
    for part in parts:
        path = f"{path}/{part}"
        flags = FOLDER & ~os.O_NOFOLLOW if path in _SYSTEM_LINKS else FOLDER
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
    top = os.open(name, FOLDER, dir_fd=folder)
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
        if depth >= MAX_DEPTH:
            os.rename(name, f".lifted-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
            is_lifted = True
            continue
        below = os.open(name, FOLDER, dir_fd=folder)
        try:
            is_lifted |= _empty(below, top, depth + 1)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=folder)
    return is_lifted
