"""Places for four sandboxes at once, whatever the machine has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sandbox.machine import Machine
from sandbox.places import Places


def room_for_four(home: Path) -> Places:
    capacity = replace(Machine().capacity(), cpus=4.0, memory_bytes=1 << 40)
    return Places(home / "run time" / "places", capacity=capacity)
