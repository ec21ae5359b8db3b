"""Sandboxes in which roles work, from the same back-ends that run trials."""

from __future__ import annotations

from dataclasses import replace

from evolution import execution
from evolution.bundle import Bundle
from sandbox.base import Sandbox
from sandbox.choice import ChoosingRunner
from sandbox.contracts import Limits

LEAST_MEMORY_BYTES = 512 * 1024**2
LEAST_DISK_BYTES = 512 * 1024**2
COPIES = 3
"""How often a bundle's files may lie in its sandbox: laid out, drafted, and as work."""


class SandboxWorkbench:
    """Opens sandboxes for roles; implements `Workbench`. `party` names on whose behalf."""

    def __init__(self, runner: ChoosingRunner, *, party: str = "") -> None:
        self._runner = runner
        self._party = party

    def open(self, bundle: Bundle) -> Sandbox:
        """See `Workbench.open`. What the bundle's own files take comes on top of its limits."""
        limits = with_room(execution.limits(bundle), sum(len(file.data) for file in bundle.files))
        return self._runner.open(execution.image_spec(bundle), limits, party=self._party)


def with_room(limits: Limits, bundle_bytes: int) -> Limits:
    """Limits under which a bundle can be worked on, not only solved."""
    more = COPIES * bundle_bytes
    return replace(
        limits,
        memory_bytes=max(limits.memory_bytes or 0, LEAST_MEMORY_BYTES) + more,
        disk_bytes=max(limits.disk_bytes or 0, LEAST_DISK_BYTES) + more,
    )
