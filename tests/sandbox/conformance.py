"""What every back-end must do, as plain functions of a `Bench`.

`PROTOCOL` needs no real process, so the fake passes it too (each check brings its script);
`REAL` needs real processes.
"""

from __future__ import annotations

from tests.sandbox import (
    conformance_files,
    conformance_images,
    conformance_life,
    conformance_processes,
    conformance_protocol,
    conformance_streams,
    conformance_trials,
    conformance_users,
)
from tests.sandbox.conformance_bench import (
    DOCKERFILE,
    MIB,
    NO_LIMITS,
    Bench,
    everything,
    image_spec,
    out,
    sh,
)

__all__ = [
    "DOCKERFILE",
    "MIB",
    "NO_LIMITS",
    "PROTOCOL",
    "REAL",
    "Bench",
    "everything",
    "image_spec",
    "out",
    "sh",
]

PROTOCOL = conformance_protocol.CHECKS
REAL = (
    *conformance_streams.CHECKS,
    *conformance_processes.CHECKS,
    *conformance_users.CHECKS,
    *conformance_files.CHECKS,
    *conformance_images.CHECKS,
    *conformance_life.CHECKS,
    *conformance_trials.CHECKS,
)
