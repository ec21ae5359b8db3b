"""The seccomp profile of every container: what sandboxes by bubblewrap may call, and no more.

An engine's own default depends on its age: older ones let a container open rings of asynchronous
input and output, faults for user space, and sockets of the virtual machine.
"""

from __future__ import annotations

import functools
import json
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
