"""What the kernel counted for a container, read inside it, from cgroups of either version."""

from __future__ import annotations

from dataclasses import dataclass

_ROOT = "/sys/fs/cgroup"
_PEAK_MEMORY = (f"{_ROOT}/memory/memory.max_usage_in_bytes", f"{_ROOT}/memory.peak")
_CPU_NANOSECONDS = f"{_ROOT}/cpuacct/cpuacct.usage"
_CPU_STAT = f"{_ROOT}/cpu.stat"
_OOM = (f"{_ROOT}/memory/memory.oom_control", f"{_ROOT}/memory.events")
_PROCESSES = (f"{_ROOT}/pids/pids.current", f"{_ROOT}/pids.current", f"{_ROOT}/pids.peak")
_REFUSED = (f"{_ROOT}/pids/pids.events", f"{_ROOT}/pids.events")
SAMPLED = "peak"

FILES = (*_PEAK_MEMORY, _CPU_NANOSECONDS, _CPU_STAT, *_OOM, *_PROCESSES, *_REFUSED)
"""What `report` of the driver is asked for; those that are missing are passed over."""


@dataclass(frozen=True, slots=True)
class Counters:
    """None where the kernel does not tell. Processes include those of the driver."""

    peak_memory_bytes: int | None = None
    cpu_seconds: float | None = None
    peak_processes: int | None = None
    refused_processes: int = 0
    oom_kills: int = 0


def read_counters(report: bytes) -> Counters:
    """From the driver's lines "file words…"; lines that make no sense are passed over."""
    values: dict[tuple[str, str], int] = {}
    for line in report.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) in (2, 3) and words[-1].isascii() and words[-1].isdigit():
            values[words[0], words[1] if len(words) == 3 else ""] = int(words[-1][:18])

    def first(files: tuple[str, ...], key: str = "") -> int | None:
        return next((values[file, key] for file in files if (file, key) in values), None)

    cpu: float | None = None
    if (_CPU_NANOSECONDS, "") in values:
        cpu = values[_CPU_NANOSECONDS, ""] / 1e9
    elif (_CPU_STAT, "usage_usec") in values:
        cpu = values[_CPU_STAT, "usage_usec"] / 1e6
    counted = [values[f, ""] for f in (*_PROCESSES, SAMPLED) if (f, "") in values]
    return Counters(
        peak_memory_bytes=first(_PEAK_MEMORY),
        cpu_seconds=cpu,
        peak_processes=max(counted) if counted else None,
        refused_processes=first(_REFUSED, "max") or 0,
        oom_kills=first(_OOM, "oom_kill") or 0,
    )
