"""Keeps the cache of layers within its budget: what was used longest ago goes first.

Safe beside builds, sandboxes and other processes that prune: a layer that somebody holds (a shared
lock on its folder) is never touched, and what goes leaves its place in one step.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxError
from sandbox.reaper import owner_label

MIN_AGE_SECONDS = 600.0
"""What was used or made within this time stays, since it may be about to be held."""
_BASE_AGE_SECONDS = 30 * 86_400.0
_BASES = ("skeleton-", "container-")


def default_budget_bytes(folder: Path) -> int:
    """What the cache may take: 20 GiB, or a tenth of its disk where that is less."""
    return min(20 * 1024**3, shutil.disk_usage(folder).total // 10)


def prune(folder: Path, max_bytes: int, *, min_age_seconds: float = MIN_AGE_SECONDS) -> int:
    """Remove images of one store until it takes at most `max_bytes`; returns how many went.

    Does nothing when another process is at it. What cannot be removed now stays for the next pass.
    """
    if not (folder / "manifests").is_dir():
        return 0
    fd = os.open(folder / "lock-prune", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0
    else:
        return _Pruning(folder, min_age_seconds).run(max_bytes)
    finally:
        os.close(fd)


class _Pruning:
    """One pass over one store."""

    def __init__(self, folder: Path, min_age_seconds: float) -> None:
        self.folder = folder
        self.min_age_seconds = min_age_seconds
        self.needed: dict[Path, set[str]] = {}
        self.ages: dict[Path, float] = {}
        self.sizes: dict[str, int] = {}
        self._read()

    def _read(self) -> None:
        for path in (self.folder / "manifests").glob("*.json"):
            try:
                self.ages[path] = _age(path.stat().st_mtime)
                manifest: dict[str, Any] = json.loads(path.read_bytes())
                layers = set(manifest["layers"])
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError):
                path.unlink(missing_ok=True)
                continue
            self.needed[path] = layers
        for layer in (self.folder / "layers").iterdir():
            self.sizes[f"layers/{layer.name}"] = self._size(layer)

    def _size(self, layer: Path) -> int:
        """What only this layer holds; it never changes, so it is counted once."""
        known = self.folder / "sizes" / layer.name
        try:
            return int(known.read_text())
        except (OSError, ValueError):
            size = size_of(layer, is_alone=True)
            known.parent.mkdir(exist_ok=True)
            known.write_text(str(size))
            return size

    def run(self, max_bytes: int) -> int:
        self._drop_unneeded()
        removed = 0
        oldest_first = sorted(self.needed, key=lambda path: -self.ages[path])
        for path in oldest_first:
            if self._total() <= max_bytes or self.ages[path] < self.min_age_seconds:
                break
            if self._remove(path):
                removed += 1
        return removed

    def _total(self) -> int:
        return sum(self.sizes.values()) + size_of(self.folder / "objects")

    def _remove(self, manifest: Path) -> bool:
        """Remove an image with the layers that nothing else needs; False while it is in use."""
        others = set().union(*(self.needed[p] for p in self.needed if p != manifest))
        alone = sorted(x for x in self.needed[manifest] - others if not _is_base(x))
        fds: list[int] = []
        try:
            for layer in alone:
                fd = _lock(self.folder / layer)
                if fd is None:
                    return False
                fds.append(fd)
            with suppress(OSError):
                if _age(manifest.stat().st_mtime) < self.min_age_seconds:
                    return False  # it was used while we looked
            manifest.unlink(missing_ok=True)
            del self.needed[manifest]
            for layer in alone:
                self._drop(layer)
        finally:
            for fd in fds:
                os.close(fd)
        self._drop_lone_objects()
        return True

    def _drop(self, layer: str) -> None:
        name = f"{owner_label(os.getpid())}-{uuid.uuid4().hex[:12]}"
        doomed = self.folder / "incoming" / name
        with suppress(FileNotFoundError):
            (self.folder / layer).rename(doomed)  # at once out of everybody's sight
            remove_folder(doomed)
        (self.folder / "sizes" / os.path.basename(layer)).unlink(missing_ok=True)
        self.sizes.pop(layer, None)

    def _drop_unneeded(self) -> None:
        """Layers without a manifest: of a build that died before it wrote one."""
        needed = set().union(*self.needed.values())
        for path in list((self.folder / "layers").iterdir()):
            if f"layers/{path.name}" in needed:
                continue
            with suppress(FileNotFoundError):
                info = path.stat()
                if _is_base(path.name):
                    is_recent = _age(info.st_mtime) < max(_BASE_AGE_SECONDS, self.min_age_seconds)
                else:
                    is_recent = _age(info.st_ctime) < self.min_age_seconds
                fd = None if is_recent else _lock(path)
                if fd is not None:
                    self._drop(f"layers/{path.name}")
                    os.close(fd)
        self._drop_lone_objects()

    def _drop_lone_objects(self) -> None:
        """Shared files that no layer holds any more."""
        for folder in (self.folder / "objects").iterdir():
            for entry in os.scandir(folder):
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_nlink == 1:
                        os.unlink(entry.path)


def _is_base(layer: str) -> bool:
    return os.path.basename(layer).startswith(_BASES)


def _age(seconds: float) -> float:
    return time.time() - seconds


def _lock(folder: Path) -> int | None:
    """A descriptor with an exclusive lock on a layer, or None while somebody holds it."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def size_of(folder: Path, *, is_alone: bool = False) -> int:
    """What the files below a folder take on the disk, in bytes; those without links elsewhere."""
    total = 0
    for path, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                info = os.lstat(os.path.join(path, name))
                if not is_alone or info.st_nlink == 1:
                    total += info.st_blocks * 512
    return total


def _remove_of_others(folder: Path) -> None:
    """Files that belong to other ids of ours, which only root over them may remove."""
    from sandbox.backends.user_ids import find_range, run_mapped

    ids = find_range()
    if ids.helpers:
        with suppress(SandboxError):
            run_mapped(ids, "remove", str(folder))


def remove_folder(folder: Path) -> None:
    """Remove a folder whatever the modes of the folders below; what stays is left to the reaper."""

    def open_up(function: Callable[..., Any], path: str, _error: BaseException) -> None:
        for name in (os.path.dirname(path), path):
            with suppress(OSError):
                # Folders only: a file may be shared with layers that stay.
                if os.path.isdir(name) and not os.path.islink(name):
                    os.chmod(name, 0o700)
        with suppress(OSError):
            if function in (os.unlink, os.rmdir):
                function(path)
            else:
                shutil.rmtree(path, ignore_errors=True)

    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, onexc=open_up)
        if os.path.lexists(folder) and os.geteuid() != 0:
            _remove_of_others(folder)
    else:
        folder.unlink(missing_ok=True)
