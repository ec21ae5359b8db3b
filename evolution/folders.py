"""One environment's folder, read without following a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evolution.bundle import BundleError
from evolution.paths import path_problem
from evolution.task_config import Problem, Severity
from evolution.validation import BUNDLE_CAP_BYTES, FILE_CAP_BYTES, FILE_COUNT_CAP
from sandbox.contracts import SandboxFile


def read_folder(
    folder: Path, *, has_git_modes: bool = False
) -> tuple[tuple[SandboxFile, ...], tuple[Problem, ...]]:
    """The files of one environment's folder, without a `.git` at its root; and what to say of it.

    With `has_git_modes`, modes are what git keeps of them (0o755 for what its owner may execute,
    else 0o644): the rest of a checkout's modes is the umask of whoever cloned it.
    Raises BundleError on anything but files, folders and links, and when there is too much of it.
    """
    files: list[SandboxFile] = []
    notes: list[Problem] = []
    total = 0
    todo = [("", folder)]
    while todo:
        head, place = todo.pop()
        names = sorted(os.listdir(place))
        if not names and head:
            notes.append(Problem(head, "an empty folder is not kept", Severity.WARNING))
        for name in names:
            path = f"{head}/{name}" if head else name
            if path == ".git":
                continue
            reason = path_problem(path)
            if reason is not None:
                raise BundleError(path.encode(errors="replace").decode(), reason)
            if (place / name).is_dir() and not (place / name).is_symlink():
                todo.append((path, place / name))
                continue
            files.append(_read_file(place / name, path, has_git_modes))
            total += len(files[-1].data)
            _cap(path, len(files), total)
    return tuple(sorted(files, key=lambda file: file.path)), tuple(notes)


def _cap(path: str, count: int, total: int) -> None:
    if count > FILE_COUNT_CAP:
        raise BundleError(path, f"more than {FILE_COUNT_CAP:,} files in one environment")
    if total > BUNDLE_CAP_BYTES:
        raise BundleError(path, f"more than {BUNDLE_CAP_BYTES:,} bytes in one environment")


def _read_file(place: Path, path: str, has_git_modes: bool) -> SandboxFile:
    """One file or link, opened without following a link and without waiting for a pipe."""
    before = place.lstat()
    if stat.S_ISLNK(before.st_mode):
        return SandboxFile(path, link=os.readlink(place), mode=0o777)
    if not stat.S_ISREG(before.st_mode):
        raise BundleError(path, "neither file, folder nor link (device, pipe or socket)")
    handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_CAP_BYTES:
            raise BundleError(path, f"no regular file of at most {FILE_CAP_BYTES:,} bytes")
        mode = stat.S_IMODE(status.st_mode)
        if has_git_modes and not mode & 0o7000:
            mode = 0o755 if mode & 0o100 else 0o644
        return SandboxFile(path, stream.read(FILE_CAP_BYTES + 1), mode)
