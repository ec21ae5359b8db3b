"""Runs a program of the tests as an ordinary user, also where the tests run as root.

Root's interpreter may lie below a folder that nobody else can enter. Then the child gets a mount
namespace of its own, in which that folder holds the interpreter and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.warden import kernel

USER_ID = 23_456
_CLONE_NEWNS = 0x00020000
_ROOT = Path(__file__).resolve().parents[2]


def _closed_top(path: Path) -> Path | None:
    """The first folder on the way to `path` that others cannot enter."""
    for folder in [*reversed(path.parents), path]:
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


def _needed() -> dict[Path, Path]:
    """Folder that is needed → the closed folder above it."""
    folders = {Path(p).resolve() for p in (sys.base_prefix, sys.prefix, _ROOT)}
    outermost = [one for one in folders if not folders.intersection(one.parents)]
    return {folder: top for folder in outermost if (top := _closed_top(folder)) is not None}


def _become_ordinary() -> None:
    needed = _needed()
    if needed:
        os.unshare(_CLONE_NEWNS)
        kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        held = {folder: os.open(folder, os.O_PATH) for folder in needed}
        for top in set(needed.values()):
            kernel.mount("none", str(top), "tmpfs", 0, "mode=755")
        for folder, fd in held.items():
            folder.mkdir(parents=True, mode=0o755)
            kernel.mount(f"/proc/self/fd/{fd}", str(folder), "", kernel.MS_BIND | kernel.MS_REC)
            os.close(fd)
    os.setgroups([])
    os.setresgid(USER_ID, USER_ID, USER_ID)
    os.setresuid(USER_ID, USER_ID, USER_ID)


@contextmanager
def home_of_ordinary_user() -> Iterator[Path]:
    """An empty folder that the ordinary user owns and can reach, removed at the end."""
    home = Path("/tmp") / f"ratchet-ordinary-{os.getpid()}"
    home.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(home, USER_ID, USER_ID)
    try:
        yield home
    finally:
        shutil.rmtree(home)


def run_as_ordinary_user(
    code: str, *arguments: str, seconds: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run Python code as an ordinary user, with the repository on its path."""
    return subprocess.run(
        [sys.executable, "-B", "-c", code, *arguments],
        preexec_fn=_become_ordinary if os.geteuid() == 0 else None,
        cwd=_ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
