"""`task.toml` as Harbor 0.26 understands it: typed values with its defaults.

The file's bytes stay the truth; this is a reading of them, never written back.
`config_reader` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sandbox.contracts import ArtifactSpec, NetworkMode, NetworkPolicy

_PUBLIC = NetworkPolicy(NetworkMode.PUBLIC)


class Severity(StrEnum):
    """Whether a problem keeps a bundle out, or is only said."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with a bundle: where, what, and whether it keeps the bundle out."""

    path: str
    reason: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class EnvironmentConfig:
    """`[environment]`, or `[verifier.environment]`, which has the same keys."""

    docker_image: str | None = None
    workdir: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    network: NetworkPolicy = _PUBLIC
    build_timeout_seconds: float = 600.0
    cpus: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    os: str = "linux"
    extras: tuple[str, ...] = ()
    """Asked for, but nothing that our sandboxes offer: "gpus", "mcp_servers", "healthcheck" …"""


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """What a whole `task.toml` says. None for a time-out means that none was asked for."""

    name: str = ""
    environment: EnvironmentConfig = EnvironmentConfig()
    agent_timeout_seconds: float | None = None
    agent_user: str | None = None
    agent_network: NetworkPolicy | None = None
    verifier_timeout_seconds: float = 600.0
    verifier_user: str | None = None
    verifier_env: tuple[tuple[str, str], ...] = ()
    verifier_network: NetworkPolicy | None = None
    verifier_environment: EnvironmentConfig | None = None
    is_separate: bool = False
    collect_count: int = 0
    solution_env: tuple[tuple[str, str], ...] = ()
    artifacts: tuple[ArtifactSpec, ...] = ()
    sidecars: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratchet(self) -> Mapping[str, Any]:
        """`[metadata.ratchet]`, empty when it is not there."""
        own = self.metadata.get("ratchet")
        return own if isinstance(own, dict) else {}
