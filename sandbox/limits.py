"""What a sandbox may use when nothing was asked for, and what of it is packed."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from sandbox.contracts import Limits
from sandbox.errors import Refused

DEFAULT_MEMORY_BYTES = 2 * 1024**3
DEFAULT_DISK_BYTES = 1024**3
DEFAULT_PROCESSES = 512
DEFAULT_DESCRIPTORS = 4096
_LEAST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class EffectiveLimits:
    """Limits with every default filled in. `cpus` are to be asked for when a place is taken."""

    memory_bytes: int
    disk_bytes: int
    processes: int
    descriptors: int
    cpus: float | None = None
    cpu_quota: float | None = None
    notes: tuple[str, ...] = ()


def resolve_limits(limits: Limits, *, can_use_quota: bool) -> EffectiveLimits:
    """Fill in the defaults.

    Raises Refused for a limit that makes no sense.
    """
    for name in ("cpus", "memory_bytes", "disk_bytes", "processes", "descriptors"):
        value = getattr(limits, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            raise Refused(f"a limit must be positive: {name} = {value}")
    for name in ("memory_bytes", "disk_bytes"):
        value = getattr(limits, name)
        if value is not None and value < _LEAST_BYTES:
            raise Refused(f"a limit below 1 MiB leaves no room to run: {name} = {value}")
    available = len(os.sched_getaffinity(0))
    notes: list[str] = []
    quota: float | None = None
    if limits.cpus is not None and limits.cpus < available:
        count = math.ceil(limits.cpus)
        if count != limits.cpus:
            quota = limits.cpus if can_use_quota else None
            if quota is None:
                notes.append(f"cpus = {limits.cpus:g} is enforced as {count} whole")
    elif limits.cpus is not None and limits.cpus > available:
        notes.append(f"cpus = {limits.cpus:g} were asked for, this machine has {available}")
    return EffectiveLimits(
        limits.memory_bytes or DEFAULT_MEMORY_BYTES,
        limits.disk_bytes or DEFAULT_DISK_BYTES,
        limits.processes or DEFAULT_PROCESSES,
        limits.descriptors or DEFAULT_DESCRIPTORS,
        limits.cpus,
        quota,
        tuple(notes),
    )


def memory_to_pack(limits: Limits, *, is_disk_memory: bool, most: int) -> int:
    """The bytes of memory that a sandbox may take, for `Places.acquire`.

    What was asked for counts in full; mere defaults give way on a machine with less (`most`).
    `is_disk_memory`: its disk is a file system in memory.
    """
    asked = limits.memory_bytes or 0
    total = limits.memory_bytes or DEFAULT_MEMORY_BYTES
    if is_disk_memory:
        asked += limits.disk_bytes or 0
        total += limits.disk_bytes or DEFAULT_DISK_BYTES
    return max(asked, min(total, most))
