"""Removes what no living owner holds: servers and wardens, cgroups, half-written layers, places;
and images past the budget of their cache.

Everything of ours carries its owner's process id and start time in its name. What does not match
is never touched.
"""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from sandbox import place_files

SERVER_MARKER = "ratchet-sandbox-server:"
_GROUP = re.compile(r"^ratchet-(\d+)\.(\d+)-\d+$")
_LABEL = re.compile(r"^(\d+)\.(\d+)$")
_INITIAL = "4026531836"
"""The number of a machine's first process namespace, which the kernel gives to no other."""
_STALE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Reaped:
    """How many things were removed."""

    processes: int = 0
    cgroups: int = 0
    folders: int = 0
    images: int = 0
    places: int = 0


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def owner_label(pid: int) -> str:
    """Names a process for as long as it lives: its id and its start time.

    In a container also its process namespace, since ids mean nothing elsewhere.
    """
    namespace = _namespace()
    return f"{pid}.{start_time(pid) or 0}{'' if namespace == _INITIAL else namespace}"


def group_prefix(label: str) -> str:
    """How the control groups of an owner's sandboxes are named, before their numbers."""
    return f"ratchet-{label}-"


def is_alive(label: str) -> bool:
    """Whether the process that `owner_label` named still lives.

    One of another namespace (the host's, another container's) counts as alive: nobody can tell.
    """
    match = _LABEL.match(label)
    if match is None:
        return False
    started, namespace = match[2], _INITIAL
    if len(started) > len(_INITIAL):
        started, namespace = started[: -len(_INITIAL)], started[-len(_INITIAL) :]
    return namespace != _namespace() or start_time(int(match[1])) == int(started)


def _namespace() -> str:
    """The process namespace that `/proc` shows, by its number."""
    return f"{os.stat('/proc/self/ns/pid').st_ino:010d}"


def reap(
    *folders: Path,
    cgroup_root: Path = Path("/sys/fs/cgroup"),
    image_budget_bytes: int | None = None,
) -> Reaped:
    """One pass; `folders` are the runtime and cache folders of back-ends.

    `image_budget_bytes` is what the images of one cache folder may take; see
    `sandbox.backends.pruning.default_budget_bytes`. Safe to run beside living back-ends, and by
    several processes at once.
    """
    return Reaped(
        processes=_reap_processes(),
        cgroups=_reap_cgroups(cgroup_root),
        folders=sum(_reap_folders(folder) for folder in folders),
        images=sum(_reap_images(folder, image_budget_bytes) for folder in folders),
        places=sum(place_files.tidy(folder / "places") for folder in folders),
    )


def _reap_images(cache_dir: Path, budget_bytes: int | None) -> int:
    from sandbox.backends import pruning  # it names its folders as we do

    if budget_bytes is None:
        budget_bytes = pruning.default_budget_bytes(cache_dir) if cache_dir.is_dir() else 0
    return sum(
        pruning.prune(manifests.parent, budget_bytes) for manifests in cache_dir.glob("*/manifests")
    )


def _reap_processes() -> int:
    count = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        marks = [word for word in words if word.startswith(SERVER_MARKER.encode())]
        if not marks or is_alive(marks[0].decode("ascii", "replace")[len(SERVER_MARKER) :]):
            continue
        try:
            os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue
        count += 1
    return count


def _reap_cgroups(root: Path) -> int:
    count = 0
    for path, folders, _files in os.walk(root):
        for name in list(folders):
            match = _GROUP.match(name)
            if match is None:
                continue
            folders.remove(name)
            if not is_alive(f"{match[1]}.{match[2]}"):
                count += _remove_cgroup(Path(path, name))
    return count


def _remove_cgroup(group: Path) -> bool:
    for _attempt in range(100):
        try:
            group.rmdir()
        except FileNotFoundError:
            return False
        except OSError:
            try:
                pids = (group / "cgroup.procs").read_text().split()
                for pid in pids:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                return False
            time.sleep(0.01)
        else:
            return True
    return False


def _reap_folders(cache_dir: Path) -> int:
    """Layers that were being written when their writer died."""
    from sandbox.backends.pruning import remove_folder

    count = 0
    for folder in cache_dir.glob("*/incoming/*"):
        try:
            is_stale = time.time() - folder.lstat().st_mtime > _STALE_SECONDS
        except OSError:
            continue
        if not is_alive(folder.name.partition("-")[0]) or is_stale:
            remove_folder(folder)
            count += 1
    return count
