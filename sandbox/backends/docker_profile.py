"""The seccomp profile of every container: what sandboxes by bubblewrap may call, and no more.

An engine's own default depends on its age: older ones let a container open rings of asynchronous
input and output, faults for user space, and sockets of the virtual machine.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any

from sandbox.warden import syscalls

_ENOSYS = 38
_NAMESPACE_FLAGS = 0x7E020000
_LOW_BITS = 0xFFFFFFFF
# Unspecified, UNIX, IPv4, IPv6, netlink. Compared by the bits that the kernel looks at.
_FAMILIES = (0, 1, 2, 10, 16)
_PERSONALITIES = (0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)

MASKED_PATHS = (
    *("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"),
    *("/sys/devices/virtual/powercap", "/proc/interrupts"),
    *("/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup"),
)
"""What Docker hides, old and new, and the page tables of the whole machine."""


@functools.cache
def readonly_paths() -> tuple[str, ...]:
    """Everything in `/proc` that is the machine's and no process's own.

    Its files belong to root, and their modes and owners are one for the machine and all its
    containers: without this, `chmod -R 0 /` in a container takes them from everybody. Names of this
    machine's kernel are added to those of others, since the engine may be elsewhere.
    """
    own = ("self", "thread-self", "mounts", "net")
    here = {name for name in os.listdir("/proc") if not name.isdecimal() and name not in own}
    return tuple(f"/proc/{name}" for name in sorted({*_KERNEL_FILES, *here}))


_KERNEL_FILES = frozenset(
    (
        *("acpi", "asound", "buddyinfo", "bus", "cgroups", "cmdline", "config.gz", "consoles"),
        *("cpuinfo", "crypto", "devices", "diskstats", "dma", "driver", "dynamic_debug"),
        *("execdomains", "fb", "filesystems", "fs", "interrupts", "iomem", "ioports", "irq"),
        *("kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount"),
        *("kpageflags", "latency_stats", "loadavg", "locks", "mdstat", "meminfo", "misc"),
        *("modules", "mtrr", "pagetypeinfo", "partitions", "pressure", "sched_debug", "schedstat"),
        *("scsi", "slabinfo", "softirqs", "stat", "swaps", "sys", "sysrq-trigger", "sysvipc"),
        *("timer_list", "timer_stats", "tty", "uptime", "version", "version_signature"),
        *("vmallocinfo", "vmcore", "vmstat", "xen", "zoneinfo"),
    )
)


def _masked(mask: int, value: int) -> list[dict[str, Any]]:
    return [{"index": 0, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}]


@functools.cache
def seccomp_profile() -> str:
    """The profile, as Docker's `seccomp=` takes it."""
    allow = "SCMP_ACT_ALLOW"
    names = sorted(syscalls.ALLOWED)
    rules: list[dict[str, Any]] = [
        {"names": names, "action": allow},
        {"names": ["clone"], "action": allow, "args": _masked(_NAMESPACE_FLAGS, 0)},
        # It takes its flags from memory, which a filter cannot read: the C library falls back.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
    ]
    for name, values in (("socket", _FAMILIES), ("personality", _PERSONALITIES)):
        arguments = [_masked(_LOW_BITS, value) for value in values]
        rules += [{"names": [name], "action": allow, "args": one} for one in arguments]
    profile = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": rules,
    }
    return json.dumps(profile, separators=(",", ":"))
