"""What a machine offers for sandboxes, in plain findings, with the remedy for what is missing."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `remedy` says what to do about it when it is not well."""

    name: str
    is_ok: bool
    detail: str
    remedy: str = ""


_SYSCTLS = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or use Docker",
    ),
)
_IN_A_CONTAINER = (
    "in a container, start it with --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined; or use Docker as the sandbox"
)


def remedy_for(step: str) -> str:
    """What to do when a sandbox does not start at this step; empty when nothing is known."""
    if step == "user namespace":
        for name, bad, remedy in _SYSCTLS:
            try:
                value = Path("/proc/sys", name).read_text().strip()
            except OSError:
                continue
            if value == bad:
                return remedy
        return _IN_A_CONTAINER
    if step == "overlay file system":
        return f"Linux 6.6 or newer is needed, this is {platform.release()}; or use Docker"
    return _IN_A_CONTAINER if step == "bubblewrap" else ""
