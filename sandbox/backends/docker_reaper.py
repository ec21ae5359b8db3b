"""Removes what no living owner holds in an engine: containers and networks; and images past budget.

Whether an owner lives can be told for processes that we can see: of this machine since its start,
and of our own process namespace. A container of any other owner goes when it does not run any more,
which it does not for long after its owner is gone: its first process ends with its input.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import APIError

from sandbox.backends.docker_engine import (
    HOME_LABEL,
    HOST_LABEL,
    LABEL,
    OWNER_LABEL,
    Engine,
    engine_errors,
)
from sandbox.reaper import is_alive

MIN_AGE_SECONDS = 600.0
"""What is younger may be about to be used."""
_RUNNING = frozenset(("running", "paused", "restarting", "removing"))
_BUDGET_BYTES = 20 * 1024**3


@dataclass(frozen=True, slots=True)
class ReapedThings:
    """How many things were removed."""

    containers: int = 0
    networks: int = 0
    images: int = 0


def host_label() -> str:
    """Names the processes that we can tell to be alive: this machine since its start, and whose."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"


def home_label(cache_dir: Path) -> str:
    """Names a back-end's folder of images, on all that it makes."""
    return hashlib.sha256(os.fsencode(cache_dir)).hexdigest()[:12]


def reap_engine(
    cache_dir: Path | None = None,
    *,
    url: str | None = None,
    image_budget_bytes: int = _BUDGET_BYTES,
) -> ReapedThings:
    """One pass; with the `cache_dir` of a back-end over its images too.

    Raises SandboxUnavailable when the engine does not answer. Safe beside living back-ends.
    """
    engine = Engine(url, timeout_seconds=30)
    try:
        with engine_errors("remove what was left behind"):
            reaping = _Reaping(engine.api)
            containers = sum(map(reaping.remove_container, reaping.containers()))
            networks = sum(map(reaping.remove_network, reaping.networks()))
            images = 0
            if cache_dir is not None:
                images = reaping.prune(cache_dir.absolute(), image_budget_bytes)
        return ReapedThings(containers, networks, images)
    finally:
        engine.close()


class _Reaping:
    """One pass over one engine."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.host = host_label()

    def _is_ownerless(self, labels: dict[str, str]) -> bool | None:
        """None when it cannot be told."""
        if labels.get(HOST_LABEL) != self.host:
            return None
        return not is_alive(labels.get(OWNER_LABEL, ""))

    def containers(self) -> Iterator[str]:
        """Ids of containers that nobody needs."""
        for found in self.api.containers(all=True, filters={"label": LABEL}):
            is_ownerless = self._is_ownerless(found.get("Labels") or {})
            is_old = time.time() - found.get("Created", 0) > MIN_AGE_SECONDS
            if is_ownerless is None:
                is_ownerless = is_old and found.get("State") not in _RUNNING
            if is_ownerless:
                yield found["Id"]

    def networks(self) -> Iterator[str]:
        """Ids of networks whose maker is gone; the engine keeps those that are in use."""
        for found in self.api.networks(filters={"label": f"{LABEL}=network"}):
            if self._is_ownerless(found.get("Labels") or {}):
                yield found["Id"]

    def remove_container(self, key: str) -> bool:
        """End and remove one with its volumes."""
        with suppress(APIError):  # it goes already, or somebody else was first
            self.api.remove_container(key, v=True, force=True)
            return True
        return False

    def remove_network(self, key: str) -> bool:
        """Remove one that nothing is on."""
        with suppress(APIError):
            self.api.remove_network(key)
            return True
        return False

    def prune(self, cache_dir: Path, budget_bytes: int) -> int:
        """Remove a back-end's images until they take at most so much; how many went.

        Those that were used longest ago go first; of what images share, nothing is counted.
        """
        used, home = cache_dir / "docker" / "used", home_label(cache_dir)
        with engine_errors("measure images"):
            rows = self.api.df().get("Images") or ()
        own = {
            row["Id"]: max(0, row["Size"] - max(0, row.get("SharedSize", 0)))
            for row in rows
            if (row.get("Labels") or {}).get(HOME_LABEL) == home and row.get("RepoTags")
        }
        tags = {row["Id"]: list(row["RepoTags"]) for row in rows if row["Id"] in own}
        total, removed = sum(own.values()), 0
        for key in sorted(own, key=lambda key: _used_at(used, tags[key])):
            if total <= budget_bytes:
                break
            if time.time() - _used_at(used, tags[key]) < MIN_AGE_SECONDS:
                break
            for tag in tags[key]:
                (used / tag.rpartition(":")[2]).unlink(missing_ok=True)  # nobody relies on it now
            with suppress(APIError):  # a container uses it
                for tag in tags[key]:
                    self.api.remove_image(tag)
                total -= own[key]
                removed += 1
        return removed


def _used_at(used: Path, tags: list[str]) -> float:
    """When an image was used last, in seconds since the epoch; 0 when nobody remembers."""
    times = [0.0]
    for tag in tags:
        with suppress(OSError):
            times.append((used / tag.rpartition(":")[2]).stat().st_mtime)
    return max(times)
