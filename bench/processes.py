"""Finding a sandbox's processes from outside, as the machine's root or their owner sees them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_CONTAINER = re.compile(r"\b([0-9a-f]{64})\b")


def pids() -> Iterator[int]:
    """Ids of all processes that can be seen."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            yield int(name)


def has_in_environment(pid: int, text: str) -> bool:
    """Whether a process was started with this text in its environment."""
    return text.encode() in _read(pid, "environ")


def command_line(pid: int) -> str:
    """The words of a process, separated by spaces; empty when it is gone."""
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def name_of(pid: int) -> str:
    """The short name that the kernel shows."""
    return _read(pid, "comm").decode(errors="replace").strip()


def parent_of(pid: int) -> int:
    """The parent's id; 0 when there is none to be seen."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def tree_below(top: int) -> list[int]:
    """A process and everything below it, parents first."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        children.setdefault(parent_of(pid), []).append(pid)
    found = [top]
    for pid in found:
        found += children.get(pid, [])
    return found


def container_of(pid: int) -> str | None:
    """The id of the Docker container that a process runs in."""
    match = _CONTAINER.search(_read(pid, "cgroup").decode(errors="replace"))
    return match[1] if match else None


def first_beside(pid: int) -> int | None:
    """The first process of the process namespace that this one is in."""
    namespace = _link(pid, "ns/pid")
    if not namespace:
        return None
    for other in pids():
        if _link(other, "ns/pid") == namespace and _inner_id(other) == 1:
            return other
    return None


def above(pid: int, is_wanted: Callable[[int], bool]) -> int | None:
    """The nearest process above this one that is wanted."""
    while pid := parent_of(pid):
        if is_wanted(pid):
            return pid
    return None


def waited_for(find: Callable[[], int | None], seconds: float) -> int | None:
    """What `find` finds within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := find()) is not None:
            return found
        time.sleep(0.005)
    return None


def _inner_id(pid: int) -> int:
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return 0


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _link(pid: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def core_seconds(pid: int) -> float:
    """Seconds of a core that a process and its children that have ended used; 0.0 when gone."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    ticks = sum(map(int, fields[11:15])) if len(fields) > 14 else 0
    return ticks / os.sysconf("SC_CLK_TCK")
