"""What a sandbox spends: sampled while commands run, exact where the kernel keeps a peak."""

from __future__ import annotations

import os
import resource
import signal
from typing import TYPE_CHECKING

from sandbox.warden.wire import Header

if TYPE_CHECKING:
    from sandbox.warden.box import Box

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_DISK_MARGIN_BYTES = 16 * 1024
_FILE_MARGIN = 8
_TOO_MANY_OPEN = b"Too many open files"  # EMFILE, as the C library says it


class Watch:
    """Samples memory, processes and disk, and ends the largest process over the memory limit."""

    def __init__(self, limits: Header, box: Box) -> None:
        self.limits = limits
        self.box = box
        self.peak_memory_bytes = 0
        self.peak_processes = 0
        self.disk_bytes = 0
        self.is_disk_full = False
        self.has_many_descriptors = False
        self.kills = 0
        self.ended_cpu_seconds = 0.0
        self._own_peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def sample(self) -> None:
        """Look once; acts when the memory limit is exceeded."""
        self._look_at_disk()
        pids = [name for name in os.listdir("/proc") if name.isdecimal()]
        self.peak_processes = max(self.peak_processes, len(pids) - 1)  # the first is not asked for
        for pid in pids:
            self._look_at_descriptors(pid)
        counted = self.box.groups.used_memory()
        used = self._sum_of(pids) if counted is None else self._without_disk(*counted)
        if used > self.limits["memory_bytes"]:
            used = self._act_on(pids, 0 if counted is None else used)
        self.peak_memory_bytes = max(self.peak_memory_bytes, used)

    def _sum_of(self, pids: list[str]) -> int:
        """What processes hold, without a group that counts.

        The quick sum counts twice what they have not changed since they forked; so a new peak of
        several is counted exactly.
        """
        private = shared = 0
        for pid in pids:
            fields = read_proc(f"/proc/{pid}/statm").split()
            if len(fields) > 2:
                private += int(fields[1]) - int(fields[2])
                shared = max(shared, int(fields[2]))
        used = (private + shared) * _PAGE_BYTES
        if used > self.peak_memory_bytes and len(pids) > 2:
            return sum(map(_proportional_bytes, pids))
        return used

    def _without_disk(self, own: int, shared: int) -> int:
        """The files of the sandbox are shared memory too for a group, and have their own limit."""
        state = os.fstatvfs(self.box.upper_fd)
        return own + max(0, shared - (state.f_blocks - state.f_bfree) * state.f_frsize)

    def _act_on(self, pids: list[str], counted: int) -> int:
        """Count exactly, and end the largest when it is still too much."""
        exact = {pid: _proportional_bytes(pid) for pid in pids}
        used = max(sum(exact.values()), counted)
        if used > self.limits["memory_bytes"]:
            largest = max(exact, key=lambda pid: (pid != "1", exact[pid]))
            try:
                fd = os.open(f"/proc/{largest}", os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                return used
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
                self.kills += 1
            except OSError:
                return used  # it is gone already
            finally:
                os.close(fd)
        return used

    def _look_at_descriptors(self, pid: str) -> None:
        try:  # since Linux 6.2 the folder's size says how many there are; before, it is 0
            count = os.stat(f"/proc/{pid}/fd").st_size
        except OSError:
            return
        self.has_many_descriptors |= count >= self.limits["descriptors"]

    def _look_at_disk(self) -> None:
        state = os.fstatvfs(self.box.upper_fd)
        self.disk_bytes = max(self.disk_bytes, (state.f_blocks - state.f_bfree) * state.f_frsize)
        if state.f_bavail * state.f_frsize < _DISK_MARGIN_BYTES or state.f_favail < _FILE_MARGIN:
            self.is_disk_full = True

    def ended(self, used: resource.struct_rusage, complaint: bytes = b"") -> None:
        """Count a command that ended, with all that it waited for.

        `complaint` is the end of its standard error when it failed: a process that may open no
        more often ends too soon for a sample to see it.

        The kernel keeps the peak of the largest process: a spike between two samples is found
        here, and counts as the limit having struck.
        """
        self._look_at_disk()
        self.ended_cpu_seconds += used.ru_utime + used.ru_stime
        self.peak_processes = max(self.peak_processes, 1)
        self.has_many_descriptors |= _TOO_MANY_OPEN in complaint
        peak = used.ru_maxrss * 1024
        if peak > self._own_peak_bytes + (4 << 20):  # below, it is the forked warden's own
            self.peak_memory_bytes = max(self.peak_memory_bytes, peak)
            if peak > self.limits["memory_bytes"] and not self.oom_kills():
                self.kills += 1

    def oom_kills(self) -> int:
        """Processes ended for memory, by us or by the kernel."""
        return self.kills + self.box.groups.oom_kills()

    def usage(self) -> Header:
        """All of it, in the words of the contract."""
        self._look_at_disk()
        living = 0.0
        for pid in os.listdir("/proc"):
            if pid.isdecimal():
                fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
                last = 15 if pid == "1" else 13  # the first one also reaped the orphans
                if len(fields) > 15:
                    living += sum(int(field) for field in fields[11:last]) / _TICKS
        return {
            "peak_memory_bytes": self.peak_memory_bytes or None,
            "cpu_seconds": round(self.ended_cpu_seconds + living, 4),
            "peak_processes": self.peak_processes,
            "disk_bytes": self.disk_bytes,
            "oom_kills": self.oom_kills(),
            "is_disk_full": self.is_disk_full,
            "struck": self.struck(),
        }

    def struck(self) -> list[str]:
        """The limits that struck, by name."""
        is_crowded = self.peak_processes >= self.limits["processes"]
        looks = {
            "memory": bool(self.oom_kills()),
            "disk": self.is_disk_full,
            "processes": is_crowded or bool(self.box.groups.refused_processes()),
            "descriptors": self.has_many_descriptors,
        }
        return [name for name, has_struck in looks.items() if has_struck]


def read_proc(path: str) -> bytes:
    """The start of a small file of /proc; nothing when it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _proportional_bytes(pid: str) -> int:
    for line in read_proc(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0
