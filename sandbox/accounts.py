"""What the sandboxes of a trial used, added up, and which limits struck."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.contracts import Limits, Usage
from sandbox.limits import DEFAULT_PROCESSES


def total(usages: Sequence[Usage]) -> Usage:
    """Sums of what adds up, and the largest of the peaks, over the sandboxes of a trial."""
    if not usages:
        return Usage()

    def known(name: str) -> list[float]:
        return [value for usage in usages if (value := getattr(usage, name)) is not None]

    def peak(name: str) -> int | None:
        values = known(name)
        return int(max(values)) if values else None

    seconds = known("cpu_seconds")
    return Usage(
        peak_memory_bytes=peak("peak_memory_bytes"),
        cpu_seconds=sum(seconds) if seconds else None,
        peak_processes=peak("peak_processes"),
        disk_bytes=peak("disk_bytes"),
        oom_kills=sum(usage.oom_kills for usage in usages),
        is_disk_full=any(usage.is_disk_full for usage in usages),
        struck=tuple(dict.fromkeys(name for usage in usages for name in usage.struck)),
    )


def struck_limits(limits: Limits, usage: Usage) -> list[str]:
    """The names of the limits that struck; a back-end need not name them itself."""
    looks = {
        "memory": bool(usage.oom_kills),
        "disk": usage.is_disk_full,
        "processes": (usage.peak_processes or 0) >= (limits.processes or DEFAULT_PROCESSES),
    }
    found = [name for name, has_struck in looks.items() if has_struck]
    return [*found, *(name for name in usage.struck if name not in found)]


def cut_short_by(usage: Usage) -> str:
    """The limit that may have cut tests short, or nothing.

    Only limits that the back-end names itself: to come near one is no reason to doubt a verdict.
    """
    if usage.oom_kills:
        return "memory"
    if usage.is_disk_full:
        return "disk"
    return next((name for name in ("processes", "descriptors") if name in usage.struck), "")
