"""Control groups of a sandbox, version 1 or 2, where we may make them; nothing where not.

The memory group is a guard behind the exact watch: pages of the sandbox's tmpfs count as memory,
so it gets memory + disk, and the tmpfs reports a full disk first.
"""

from __future__ import annotations

import os

from sandbox.warden.wire import Header

_ROOT = "/sys/fs/cgroup"


class Groups:
    """The groups of one sandbox: their folders, and descriptors opened while we still may."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.procs: list[int] = []
        self.oom: list[int] = []

    def close(self) -> None:
        """Close the descriptors; the folders stay."""
        for fd in (*self.procs, *self.oom):
            os.close(fd)

    def oom_kills(self) -> int:
        """How many processes the kernel ended because the memory group was full."""
        total = 0
        for fd in self.oom:
            for line in os.pread(fd, 4096, 0).splitlines():
                if line.startswith(b"oom_kill "):
                    total += int(line.split()[1])
        return total


def own_folders(root: str = _ROOT, proc_file: str = "/proc/self/cgroup") -> dict[str, str]:
    """Controller name → this process's own folder in that controller's hierarchy.

    Version 2 folders come under the names of the controllers that children may use.
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
                if name in ("memory", "pids", "cpu") and os.path.isdir(folder):
                    found[name] = folder
            continue
        folder = f"{root}{path}".rstrip("/")
        try:
            with open(f"{folder}/cgroup.subtree_control", encoding="utf-8") as file:
                for name in file.read().split():
                    found.setdefault(name, folder)
        except OSError:
            continue
    return found


class Cgroups:
    """Makes groups named `<prefix><sandbox id>` below our own."""

    def __init__(self, prefix: str, root: str = _ROOT, proc_file: str = "/proc/self/cgroup"):
        self.prefix = prefix
        self.folders = {
            name: folder
            for name, folder in own_folders(root, proc_file).items()
            if os.access(folder, os.W_OK)
        }

    def create(self, request: Header) -> Groups:
        """Groups for one sandbox, as far as this machine lets us."""
        groups = Groups()
        guard = request["memory_bytes"] + request["disk_bytes"] + 64 * 1024 * 1024
        wanted = {
            "memory": (("memory.limit_in_bytes", "memory.max"), str(guard)),
            "pids": (("pids.max",), str(request["processes"] + 8)),
        }
        if request.get("cpu_quota"):
            quota = int(request["cpu_quota"] * 100_000)
            wanted["cpu"] = (("cpu.cfs_quota_us", "cpu.max"), str(quota))
        for name, (files, value) in wanted.items():
            parent = self.folders.get(name)
            if parent is not None:
                self._add(groups, f"{parent}/{self.prefix}{request['id']}", files, value)
        return groups

    def _add(self, groups: Groups, path: str, files: tuple[str, ...], value: str) -> None:
        try:
            if path not in groups.paths:
                os.mkdir(path)
                groups.paths.append(path)
                groups.procs.append(os.open(f"{path}/cgroup.procs", os.O_WRONLY))
                for name in ("memory.oom_control", "memory.events"):
                    if os.path.exists(f"{path}/{name}"):
                        groups.oom.append(os.open(f"{path}/{name}", os.O_RDONLY))
            for name in files:
                if os.path.exists(f"{path}/{name}"):
                    with open(f"{path}/{name}", "w", encoding="utf-8") as file:
                        file.write(value)
        except OSError:
            return  # the exact watch and the process's own limits still hold


def remove(paths: list[str]) -> None:
    """Remove groups that have emptied; one that has not is left to the reaper."""
    for path in paths:
        try:
            os.rmdir(path)
        except OSError:
            continue
