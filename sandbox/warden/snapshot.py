"""Keeps the writable layer of a sandbox as a layer of the image cache."""

from __future__ import annotations

import os
import stat

from sandbox.warden.files import FOLDER, MAX_DEPTH
from sandbox.warden.reading import TooMuch

_COPY_BYTES = 1 << 22


def store(upper: int, into: int, name: str) -> None:
    """Copy the writable layer into the cache as the folder `name`, whiteouts and owners too."""
    os.mkdir(name, 0o755, dir_fd=into)
    target = os.open(name, FOLDER, dir_fd=into)
    try:
        _copy_folder(upper, target, 0)
    finally:
        os.close(target)


def _copy_folder(source: int, target: int, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise TooMuch(f"folders are nested more than {MAX_DEPTH} deep")
    for name in os.listdir(source):
        info = os.stat(name, dir_fd=source, follow_symlinks=False)
        kind = stat.S_IFMT(info.st_mode)
        if kind == stat.S_IFDIR:
            os.mkdir(name, 0o700, dir_fd=target)
            one, two = (os.open(name, FOLDER, dir_fd=fd) for fd in (source, target))
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
            # In a sandbox setuid has no effect; in the cache it would make a stranger's program us.
            mode = 0o3777 if kind == stat.S_IFDIR else 0o1777
            os.chmod(name, info.st_mode & mode, dir_fd=target)
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
