"""Watching processes that a test started."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(is_true: Callable[[], object], seconds: float, what: str) -> None:
    """Fail with `what` when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def naming(text: str) -> dict[int, str]:
    """The living processes whose command line or environment holds a text: pid, command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if command and text in command + (entry / "environ").read_text(errors="replace"):
                found[int(entry.name)] = command
        except OSError:
            continue
    return found
