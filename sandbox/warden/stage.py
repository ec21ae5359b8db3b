"""The stage: one folder, in a private mount namespace, from which a root file system is built.

It hides the real paths: the cache, bubblewrap and a Python may lie in folders that the sandbox's
spare user id cannot enter, or have names that mount options cannot carry.
"""

from __future__ import annotations

import os

from sandbox.warden import kernel
from sandbox.warden.wire import Header

_CANDIDATES = ("/mnt", "/media", "/srv", "/opt", "/tmp", "/run")  # noqa: S108

_found: list[str] = []
_hidden: list[int] = []
_mounted: dict[tuple[str, int, int], str] = {}


def place() -> str:
    """The host's folder over which the stage is mounted. Raises FileNotFoundError."""
    if not _found:
        folders = [path for path in _CANDIDATES if os.path.isdir(path) and not os.path.islink(path)]
        if not folders:
            raise FileNotFoundError(2, f"none of {', '.join(_CANDIDATES)} exists on this host")
        _found.append(folders[0])
    return _found[0]


def prepare(config: Header) -> None:
    """Mount the stage. The caller has just entered a mount namespace of its own.

    Afterwards `place()` holds `cache`, `bwrap` (with its libraries beside it), `python` and an
    empty `box`.
    """
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    sources = {
        name: os.open(path, os.O_PATH | os.O_DIRECTORY)
        for name, path in config["stage"].items()
        if path
    }
    at = place()
    _hidden[:] = [os.open(at, os.O_PATH | os.O_DIRECTORY)]
    kernel.mount("ratchet", at, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    os.mkdir(f"{at}/box", 0o755)
    for name, fd in sources.items():
        os.makedirs(f"{at}/{name}", 0o755)
        kernel.mount(f"/proc/self/fd/{fd}", f"{at}/{name}", "", kernel.MS_BIND | kernel.MS_REC)
        os.close(fd)


def mount_source(source: str) -> str:
    """A folder of the host as a name below the stage, mounted there when it was not before.

    Raises OSError.
    """
    at = place()
    path = os.path.realpath(source)
    if path == at or path.startswith(f"{at}/"):  # the stage lies over it
        fd = os.open(f".{path[len(at) :]}", os.O_PATH | os.O_DIRECTORY, dir_fd=_hidden[0])
    else:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY)
    try:
        info = os.fstat(fd)
        key = (path, info.st_dev, info.st_ino)
        if key not in _mounted:
            name = f"mounts/{len(_mounted)}"
            os.makedirs(f"{at}/{name}", 0o755)
            kernel.mount(f"/proc/self/fd/{fd}", f"{at}/{name}", "", kernel.MS_BIND | kernel.MS_REC)
            _mounted[key] = name
        return _mounted[key]
    finally:
        os.close(fd)
