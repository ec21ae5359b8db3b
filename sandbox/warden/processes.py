"""Small questions about the processes of a sandbox."""

from __future__ import annotations

import os

from sandbox.warden.watch import read_proc

_EXITING = 4  # PF_EXITING among the flags in /proc/PID/stat


def is_first_process_alive() -> bool:
    """Whether the sandbox goes on. Dying, it kills its processes before anybody is told."""
    fields = read_proc("/proc/1/stat").rpartition(b")")[2].split()
    return len(fields) > 6 and not int(fields[6]) & _EXITING


def are_all_ended() -> bool:
    """Whether nothing but the first process is left; what nobody has waited for is no process."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and name != "1":
            fields = read_proc(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if fields and fields[0] not in (b"Z", b"X"):
                return False
    return True


def status_of(raw: int) -> int:
    """As a shell says it: 128 + the signal for a command that was ended by one."""
    status = os.waitstatus_to_exitcode(raw)
    return 128 - status if status < 0 else status


def reap_one() -> bool:
    """Wait for one ended child, if there is one."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False
