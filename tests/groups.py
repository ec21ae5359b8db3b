"""Groups of tests that need something which not every machine has, and how to get it.

What is missing is left out of a run and named at its end. `RATCHET_REQUIRE=browser,interop` (or
`all`) makes a missing group an error instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

BASE_IMAGE = "debian:bookworm-slim"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Group:
    """A marker, whether its tests can run here, and what to do when they cannot."""

    marker: str
    is_here: Callable[[], bool]
    remedy: str


def chromium() -> str | None:
    """The browser's program, from RATCHET_CHROMIUM or PATH."""
    named = os.environ.get("RATCHET_CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def has_user_namespaces() -> bool:
    """Whether an ordinary process may make a user namespace, which bubblewrap needs."""
    code = "import os; os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=False)
    return done.returncode == 0


def has_docker() -> bool:
    """Whether a Docker engine answers, and has the image that environments here are built from."""
    import docker

    with contextlib.suppress(docker.errors.DockerException, OSError):
        client = docker.from_env(timeout=3)
        try:
            return bool(client.images.get(BASE_IMAGE))
        finally:
            client.close()
    return False


def has_harbor() -> bool:
    """Whether Harbor's own environment was made."""
    from tests.interop.harbor_venv import PLACE

    return (PLACE / "bin" / "python").exists()


GROUPS = (
    Group(
        "bubblewrap",
        has_user_namespaces,
        "user namespaces are refused: sysctl user.max_user_namespaces, and on Ubuntu"
        " kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    Group(
        "browser",
        lambda: chromium() is not None,
        "no Chromium: install the package chromium, or set RATCHET_CHROMIUM to its path",
    ),
    Group(
        "redis",
        lambda: shutil.which("redis-server") is not None,
        "no redis-server on PATH: install the package redis-server",
    ),
    Group(
        "docker",
        has_docker,
        f"no Docker engine with {BASE_IMAGE} answers: .ci/engine makes one, or set DOCKER_HOST",
    ),
    Group(
        "interop",
        has_harbor,
        "Harbor is not installed: .venv/bin/python -m tests.interop.harbor_venv (needs a package"
        " index)",
    ),
)


def required() -> frozenset[str]:
    """The markers that may not be left out."""
    names = {name.strip() for name in os.environ.get("RATCHET_REQUIRE", "").split(",")} - {""}
    known = {group.marker for group in GROUPS}
    if "all" in names:
        return frozenset(known)
    if unknown := names - known:
        raise ValueError(f"RATCHET_REQUIRE names no group of tests: {', '.join(sorted(unknown))}")
    return frozenset(names)
