"""Control groups of a sandbox, version 1 or 2, where we may make them; nothing where not.

The memory group is a guard behind the exact watch: pages of the sandbox's tmpfs count as memory,
so it gets memory + disk, and the tmpfs reports a full disk first.
"""

from __future__ import annotations

import os
import time

from sandbox.warden.wire import Header

_ROOT = "/sys/fs/cgroup"
_CONTROLLERS = ("memory", "pids", "cpu")
OWN_PROCESSES = 2
"""Of the processes in a sandbox's groups, so many are not the commands': bubblewrap's and the
first one."""


class Groups:
    """The groups of one sandbox: their folders, and descriptors opened while we still may."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.procs: list[int] = []
        self.oom: list[int] = []
        self.pids: list[int] = []
        self.memory: list[int] = []

    def close(self) -> None:
        """Close the descriptors; the folders stay."""
        for fd in (*self.procs, *self.oom, *self.pids, *self.memory):
            os.close(fd)

    def oom_kills(self) -> int:
        """How many processes the kernel ended because the memory group was full."""
        return sum(_count(fd, b"oom_kill ") for fd in self.oom)

    def used_memory(self) -> tuple[int, int] | None:
        """What processes hold of their own, and shared memory with the files of tmpfs, in bytes.

        None where no group counts.
        """
        for fd in self.memory:
            counts = dict.fromkeys((b"rss", b"anon", b"shmem"), 0)  # version 1, version 2, both
            for line in os.pread(fd, 4096, 0).splitlines():
                name, _space, value = line.partition(b" ")
                if name in counts:
                    counts[name] = int(value)
            return counts[b"rss"] + counts[b"anon"], counts[b"shmem"]
        return None

    def refused_processes(self) -> int:
        """How many processes were not started because the group was full."""
        return sum(_count(fd, b"max ") for fd in self.pids)


def _count(fd: int, name: bytes) -> int:
    """One counter of a file of events."""
    for line in os.pread(fd, 4096, 0).splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def own_folders(root: str = _ROOT, proc_file: str = "/proc/self/cgroup") -> dict[str, str]:
    """Controller name → the folder below which a sandbox's group of it may be made.

    With version 1 it is this process's own. Version 2 lets a folder that has children with
    controllers hold no process, the root excepted: there it is the nearest folder above that gives
    its children the controller, and that lets us move processes between them.
    """
    found: dict[str, str] = {}
    try:
        with open(proc_file, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return found
    for line in lines:
        _number, names, path = line.split(":", 2)
        if names:
            for name in names.split(","):
                folder = f"{root}/{name}{path}".rstrip("/")
                if name in _CONTROLLERS and os.path.isdir(folder):
                    found[name] = folder
        else:
            for name, folder in _unified(root, path).items():
                found.setdefault(name, folder)
    return found


def _unified(root: str, path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    parts = [part for part in path.split("/") if part]
    if ".." in parts:  # we were moved out of what we can see
        return found
    for depth in range(len(parts), -1, -1):
        folder = "/".join([root, *parts[:depth]])
        try:
            with open(f"{folder}/cgroup.subtree_control", encoding="utf-8") as file:
                names = file.read().split()
        except OSError:
            continue
        if os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK):
            for name in names:
                if name in _CONTROLLERS:
                    found.setdefault(name, folder)
    return found


def _lets_us(folder: str, prefix: str) -> bool:
    """Whether a group can be made there: by trying, since a read-only mount or a policy may not."""
    path = f"{folder}/{prefix}{time.monotonic_ns()}"
    try:
        os.mkdir(path)
        os.rmdir(path)
    except OSError:
        return False
    return True


class Cgroups:
    """Makes groups named `<prefix><number>` below our own, where this machine lets us."""

    def __init__(self, prefix: str, root: str = _ROOT, proc_file: str = "/proc/self/cgroup"):
        self.prefix = prefix
        self.folders = {
            name: folder
            for name, folder in own_folders(root, proc_file).items()
            if _lets_us(folder, prefix)
        }

    def create(self, request: Header) -> Groups:
        """Groups for one sandbox.

        Raises OSError where one that can be made could not: a sandbox without the guard that was
        promised must not start.
        """
        groups = Groups()
        guard = request["memory_bytes"] + request["disk_bytes"] + 64 * 1024 * 1024
        wanted = {
            "memory": (("memory.limit_in_bytes", "memory.max"), str(guard)),
            "pids": (("pids.max",), str(request["processes"] + OWN_PROCESSES)),
        }
        if request.get("cpu_quota"):
            quota = int(request["cpu_quota"] * 100_000)
            wanted["cpu"] = (("cpu.cfs_quota_us", "cpu.max"), str(quota))
        for name, (files, value) in wanted.items():
            parent = self.folders.get(name)
            if parent is not None:
                try:
                    self._add(groups, f"{parent}/{self.prefix}{request['id']}", files, value)
                except OSError:
                    groups.close()
                    remove(groups.paths)
                    raise
        return groups

    def _add(self, groups: Groups, path: str, files: tuple[str, ...], value: str) -> None:
        if path not in groups.paths:
            os.mkdir(path)
            groups.paths.append(path)
            groups.procs.append(os.open(f"{path}/cgroup.procs", os.O_WRONLY))
            for name in ("memory.oom_control", "memory.events"):
                if os.path.exists(f"{path}/{name}"):
                    groups.oom.append(os.open(f"{path}/{name}", os.O_RDONLY))
        for name in files:
            if os.path.exists(f"{path}/{name}"):
                _write(f"{path}/{name}", value)
        if "pids.max" in files and os.path.exists(f"{path}/pids.events"):
            groups.pids.append(os.open(f"{path}/pids.events", os.O_RDONLY))
        if "memory.max" in files:
            groups.memory.append(os.open(f"{path}/memory.stat", os.O_RDONLY))
        if "memory.max" in files and os.path.exists(f"{path}/memory.swap.max"):
            _write(f"{path}/memory.swap.max", "0")


def _write(path: str, value: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(value)


def remove(paths: list[str]) -> None:
    """Remove groups that have emptied; one that has not is left to the reaper."""
    for path in paths:
        try:
            os.rmdir(path)
        except OSError:
            continue
