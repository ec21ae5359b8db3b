"""What a sandbox may use when nothing was asked for, and which CPUs it runs on."""

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
    """Limits with every default filled in. `cpu_set` is empty when all CPUs may be used."""

    memory_bytes: int
    disk_bytes: int
    processes: int
    descriptors: int
    cpu_set: tuple[int, ...] = ()
    cpu_quota: float | None = None
    notes: tuple[str, ...] = ()


def resolve_limits(limits: Limits, *, slot: int, can_use_quota: bool) -> EffectiveLimits:
    """Fill in the defaults and choose CPUs; neighbouring slots get different ones.

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
    available = sorted(os.sched_getaffinity(0))
    notes: list[str] = []
    cpu_set: tuple[int, ...] = ()
    quota: float | None = None
    if limits.cpus is not None and limits.cpus < len(available):
        count = math.ceil(limits.cpus)
        if count != limits.cpus:
            quota = limits.cpus if can_use_quota else None
            if quota is None:
                notes.append(f"cpus = {limits.cpus:g} is enforced as {count} whole")
        first = slot * count
        cpu_set = tuple(available[(first + n) % len(available)] for n in range(count))
    elif limits.cpus is not None and limits.cpus > len(available):
        notes.append(f"cpus = {limits.cpus:g} were asked for, this machine has {len(available)}")
    return EffectiveLimits(
        limits.memory_bytes or DEFAULT_MEMORY_BYTES,
        limits.disk_bytes or DEFAULT_DISK_BYTES,
        limits.processes or DEFAULT_PROCESSES,
        limits.descriptors or DEFAULT_DESCRIPTORS,
        cpu_set,
        quota,
        tuple(notes),
    )
