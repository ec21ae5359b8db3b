"""What the writable layer of an overlay file system tells about changes."""

from __future__ import annotations

import os
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPAQUE = "user.overlay.opaque"


class Layer:
    """One layer below a path: its files, what it deletes, and the folders it starts anew."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.whiteouts: list[str] = []
        self.opaque: list[str] = []

    def walk(self, folder: int, path: str) -> None:
        """Take in everything below a folder."""
        if path and _is_opaque(folder):
            self.opaque.append(path)
        for name in os.listdir(folder):
            self.take(folder, name, f"{path}/{name}")

    def take(self, folder: int, name: str, path: str) -> None:
        """Take in one name; a missing one is nothing."""
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return
        if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
            self.whiteouts.append(path)
        elif not stat.S_ISDIR(info.st_mode):
            self.files.append(path)
        else:
            below = os.open(name, _FOLDER, dir_fd=folder)
            try:
                self.walk(below, path)
            finally:
                os.close(below)


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


def changes(upper: int, lowers: list[int]) -> tuple[list[str], list[str]]:
    """Files written, and files of the lower layers (the top one first) that are gone; sorted."""
    top = Layer()
    top.walk(upper, "")
    gone: set[str] = set()
    for path in (*top.whiteouts, *top.opaque):
        gone |= _below(path, lowers)
    return sorted(top.files), sorted(gone - set(top.files))


def _below(path: str, lowers: list[int]) -> set[str]:
    """The files that the lower layers together show at and below a path."""
    found: set[str] = set()
    hidden: list[str] = []
    for lower in lowers:
        layer = Layer()
        layer.take(lower, path.lstrip("/"), path)
        found.update(file for file in layer.files if not _is_hidden(file, hidden))
        hidden += [*layer.whiteouts, *layer.opaque, *layer.files]
    return found


def _is_hidden(path: str, hidden: list[str]) -> bool:
    return any(path == head or path.startswith(f"{head}/") for head in hidden)
