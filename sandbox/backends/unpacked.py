"""Unpacks an image's root file system from a tar stream into a layer of the cache.

The stream is not trusted. Every entry is made from its folder's descriptor, and no link is ever
followed: not on the way to an entry, not by a hard link. Owners are shifted into the sandbox's
range of ids. Left out, knowingly: device nodes (a sandbox has its own `/dev`), extended attributes
and file capabilities, and the setuid and setgid bits of files, which could not work in a sandbox
(no_new_privs) and would make programs of strangers powerful on the host.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandbox.backends.tar_end import Member, has_end
from sandbox.errors import ImageBuildFailed, SandboxUnavailable, TooLarge

MAX_BYTES = 64 * 1024**3
MAX_ENTRIES = 4_000_000
_STREAM_BYTES = 1 << 20
_SHARED_BYTES = 16 << 20
_SHARED_FOLDERS = frozenset(("usr", "lib", "lib32", "lib64", "libx32", "bin", "sbin"))
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE, _FOLDER_MODE = 0o1777, 0o3777


@dataclass(frozen=True, slots=True)
class Owners:
    """The ids of the sandbox's users as we see them: `base` + id, of `count`; one id means us."""

    base: int
    count: int

    def of(self, member: tarfile.TarInfo) -> tuple[int, int] | None:
        """The user and group of an entry; None when all is ours."""
        if self.count == 1:
            return None
        last = self.count - 1
        return self.base + min(member.uid, last), self.base + min(member.gid, last)


def unpack(stream: IO[bytes], folder: Path, owners: Owners, objects: Path) -> None:
    """Unpack a tar stream into a new folder.

    System files are hard links into `objects`, which images share: a dozen images of one base take
    its space, and the machine's page cache, once. Raises ImageBuildFailed for a stream that is no
    root file system, SandboxUnavailable for one that broke off, TooLarge, and OSError.
    """
    folder.mkdir(mode=0o755)
    tree = _Tree(folder, owners, objects)
    try:
        with tarfile.open(
            fileobj=stream,
            mode="r|",
            bufsize=_STREAM_BYTES,
            errors="surrogateescape",
            tarinfo=Member,
        ) as archive:
            for count, member in enumerate(archive):
                archive.members.clear()  # type: ignore[attr-defined]  # or it keeps them all
                if count > MAX_ENTRIES:
                    raise TooLarge(f"the image has more than {MAX_ENTRIES} files")
                tree.take(archive, member)
            if not has_end(archive):
                raise SandboxUnavailable("the image's archive is broken: it has no end")
        tree.finish()
    except tarfile.TarError as error:
        # Whoever sent it broke off: an engine, a disk; a bundle has no hand in its form.
        text = str(error).replace("\n", " ")
        raise SandboxUnavailable(f"the image's archive is broken: {text}") from error
    finally:
        tree.close()


class _Tree:
    """The folder being filled: where we are in it, and what is left to be done at the end."""

    def __init__(self, folder: Path, owners: Owners, objects: Path) -> None:
        self.root = folder
        self.owners = owners
        self.objects = objects
        self.room = MAX_BYTES
        self._path: list[tuple[str, int]] = [("", os.open(folder, _FOLDER))]
        self._folders: dict[str, tarfile.TarInfo] = {}
        self._fresh: dict[str, str] = {}
        self._used: set[str] = set()

    def close(self) -> None:
        """Let go of the open folders."""
        for _name, fd in self._path:
            os.close(fd)
        self._path = []

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Make one entry."""
        parts = _parts(member.name)
        if not parts:
            return  # the root itself
        try:
            self._take(archive, member, parts)
        except (NotADirectoryError, FileNotFoundError, IsADirectoryError) as error:
            raise ImageBuildFailed(f"the image's archive is broken: {member.name!r}") from error
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTEMPTY):
                raise
            raise ImageBuildFailed(f"the image's archive is broken: {member.name!r}") from error

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo, parts: list[str]) -> None:
        at, name = self._enter(parts[:-1]), parts[-1]
        if member.isdir():
            self._make_folder(at, name)
            self._folders["/".join(parts)] = member
            return
        if not (member.isreg() or member.issym() or member.islnk() or member.isfifo()):
            return
        _clear(at, name)
        self._folders.pop("/".join(parts), None)
        if member.issym():
            os.symlink(member.linkname, name, dir_fd=at)
        elif member.islnk():
            target = _parts(member.linkname)
            if not target or target == parts:
                raise ImageBuildFailed(f"the image's archive is broken: {member.name!r}")
            source = self._find(target[:-1])
            try:
                if stat.S_ISDIR(os.stat(target[-1], dir_fd=source, follow_symlinks=False).st_mode):
                    raise IsADirectoryError
                os.link(target[-1], name, src_dir_fd=source, dst_dir_fd=at, follow_symlinks=False)
            finally:
                os.close(source)
            return
        elif member.isfifo():
            os.mkfifo(name, 0o600, dir_fd=at)
            os.chmod(name, member.mode & _FILE_MODE, dir_fd=at)
        else:
            self._make_file(archive, member, parts, at)
            return
        owner = self.owners.of(member)
        if owner is not None:
            os.chown(name, *owner, dir_fd=at, follow_symlinks=False)
        _set_time(name, member, at)

    def _enter(self, parts: list[str]) -> int:
        """The descriptor of a folder, made when it is missing; most are where we just were."""
        depth = 0
        while depth < len(parts) and depth + 1 < len(self._path):
            if self._path[depth + 1][0] != parts[depth]:
                break
            depth += 1
        while len(self._path) > depth + 1:
            os.close(self._path.pop()[1])
        for part in parts[depth:]:
            above = self._path[-1][1]
            self._make_folder(above, part)
            self._path.append((part, os.open(part, _FOLDER, dir_fd=above)))
        return self._path[-1][1]

    def _find(self, parts: list[str]) -> int:
        """The descriptor of a folder that is there; the caller closes it."""
        current = os.open(".", _FOLDER, dir_fd=self._path[0][1])
        for part in parts:
            try:
                below = os.open(part, _FOLDER, dir_fd=current)
            finally:
                os.close(current)
            current = below
        return current

    def _make_folder(self, at: int, name: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=at)
            if self.owners.base:
                os.chown(name, self.owners.base, self.owners.base, dir_fd=at)
            os.chmod(name, 0o755, dir_fd=at)  # noqa: S103

    def _make_file(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, parts: list[str], at: int
    ) -> None:
        self.room -= member.size
        if self.room < 0:
            raise TooLarge(f"the image is larger than {MAX_BYTES} bytes")
        content = archive.extractfile(member)
        if content is None:
            return
        is_shared = parts[0] in _SHARED_FOLDERS and 0 < member.size <= _SHARED_BYTES
        if not is_shared:
            chunks: Iterable[bytes] = iter(lambda: content.read(_STREAM_BYTES), b"")
            self._write(chunks, member, parts[-1], at)
            return
        data = content.read()
        key = _key(data, member)
        if key not in self._used:  # two files of one image stay two files
            self._used.add(key)
            if self._link_object(key, parts[-1], len(data), at):
                return
            self._fresh[key] = "/".join(parts)
        self._write((data,), member, parts[-1], at)

    def _link_object(self, key: str, name: str, size: int, at: int) -> bool:
        try:
            os.link(self.objects / key[:2] / key, name, dst_dir_fd=at)
        except OSError:
            return False  # there is none, or it has as many links as the file system allows
        if os.stat(name, dir_fd=at, follow_symlinks=False).st_size == size:
            return True
        os.unlink(name, dir_fd=at)
        return False

    def _write(self, chunks: Iterable[bytes], member: tarfile.TarInfo, name: str, at: int) -> None:
        fd = os.open(name, _NEW, 0o600, dir_fd=at)
        try:
            for chunk in chunks:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
            owner = self.owners.of(member)
            if owner is not None:
                os.fchown(fd, *owner)
            os.fchmod(fd, member.mode & _FILE_MODE)
        finally:
            os.close(fd)
        _set_time(name, member, at)

    def finish(self) -> None:
        """Give the folders their modes and owners, the deepest first; then all is on the disk.

        Files are offered to other images only after that: a machine that loses its power must not
        leave an empty file under the name of its content.
        """
        for path in sorted(self._folders, reverse=True):
            member = self._folders[path]
            folder = self._find(path.split("/"))
            try:
                owner = self.owners.of(member)
                if owner is not None:
                    os.fchown(folder, *owner)
                os.fchmod(folder, member.mode & _FOLDER_MODE)
                os.utime(folder, (member.mtime, member.mtime))
            finally:
                os.close(folder)
        top = self._path[0][1]
        if self.owners.base:
            os.fchown(top, self.owners.base, self.owners.base)
        os.fchmod(top, 0o755)
        _sync(top)
        for key, path in self._fresh.items():
            shared = self.objects / key[:2] / key
            shared.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                os.link(self.root / path, shared, follow_symlinks=False)


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise ImageBuildFailed(f"the image's archive leaves its own root: {name!r}")
    return parts


def _clear(at: int, name: str) -> None:
    """A later entry replaces an earlier one, except a folder that is not empty."""
    try:
        os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        os.rmdir(name, dir_fd=at)


def _set_time(name: str, member: tarfile.TarInfo, at: int) -> None:
    seconds = max(0, int(member.mtime))
    os.utime(name, (seconds, seconds), dir_fd=at, follow_symlinks=False)


def _key(data: bytes, member: tarfile.TarInfo) -> str:
    """Names a file by all that hard links share."""
    head = f"{member.uid}\0{member.gid}\0{stat.S_IMODE(member.mode)}\0{int(member.mtime)}\0"
    total = hashlib.sha256(head.encode())
    total.update(data)
    return total.hexdigest()


def _sync(fd: int) -> None:
    """Have the file system of a descriptor written to its disk."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
