"""What this machine has and what of it is free: CPUs, memory, and the pressure on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sandbox.packing import Capacity

_MIB = 1024 * 1024
_LIMIT = ("memory.max", "memory.limit_in_bytes")
_USED = ("memory.current", "memory.usage_in_bytes")


def reserve_bytes(total: int) -> int:
    """What is left to everything else: a sixteenth, and 512 MiB where that is not too much."""
    return max(total // 16, min(512 * _MIB, total // 4))


class Machine:
    """This machine as this process may use it: limits of its control groups count."""

    def __init__(self, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self.proc = proc
        self.cgroups = cgroups
        self._total = self._meminfo("MemTotal")
        limits = [(folder, _number(folder, _LIMIT)) for folder in self._own_groups("memory")]
        self._limited = [(f, limit) for f, limit in limits if limit and limit < self._total]
        self.memory_bytes = min([self._total, *(limit for _folder, limit in self._limited)])
        self.reserve_bytes = reserve_bytes(self.memory_bytes)

    def capacity(self) -> Capacity:
        """What sandboxes may take: this process's CPUs, and the memory but for the reserve."""
        numbers = tuple(sorted(os.sched_getaffinity(0)))
        cpus = min((len(numbers), *self._cpu_quotas()))
        return Capacity(cpus, self.memory_bytes - self.reserve_bytes, numbers)

    def available_bytes(self) -> int:
        """What could be had now without swapping, as the kernel and the control groups say."""
        found = [self._meminfo("MemAvailable")]
        for folder, limit in self._limited:
            used = _number(folder, _USED)
            if used is not None:
                found.append(limit - used + _droppable(folder))
        return max(0, min(found))

    def memory_pressure(self) -> float:
        """The part of the last 10 s in which everything here waited for memory, 0 to 1."""
        try:
            lines = (self.proc / "pressure" / "memory").read_text().splitlines()
        except OSError:  # no such report on this kernel, or not in this container
            return 0.0
        for line in lines:
            if line.startswith("full "):
                return float(line.split()[1].partition("=")[2]) / 100
        return 0.0

    def _meminfo(self, name: str) -> int:
        with open(f"{self.proc}/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) * 1024
        raise OSError(f"{self.proc}/meminfo names no {name}")

    def _cpu_quotas(self) -> Iterator[float]:
        for folder in self._own_groups("cpu"):
            quota, period = _quota(folder)
            if quota > 0 and period > 0:
                yield quota / period

    def _own_groups(self, controller: str) -> Iterator[Path]:
        """This process's folder in the controller's hierarchy, and all above it."""
        try:
            lines = (self.proc / "self" / "cgroup").read_text().splitlines()
        except OSError:
            return
        for line in lines:
            _id, names, path = line.split(":", 2)
            if names and controller not in names.split(","):
                continue
            root = self.cgroups / (names and controller)
            folder = root / path.lstrip("/")
            while folder.is_relative_to(root):
                yield folder
                folder = folder.parent


def _number(folder: Path, names: tuple[str, ...]) -> int | None:
    for name in names:
        try:
            return int((folder / name).read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
    return None


def _quota(folder: Path) -> tuple[int, int]:
    """Microseconds of a CPU in each period, and the period; zero or less where there is none."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return (0 if quota == "max" else int(quota)), int(period)
    except (OSError, ValueError):
        quota_us = _number(folder, ("cpu.cfs_quota_us",))
        return quota_us or 0, _number(folder, ("cpu.cfs_period_us",)) or 0


def _droppable(folder: Path) -> int:
    """File pages that the kernel can drop; they count as used."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    fields = dict(line.split()[:2] for line in lines)
    return int(fields.get("total_inactive_file", fields.get("inactive_file", "0")))
