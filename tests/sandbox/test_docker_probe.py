"""What is said of an engine, and of one that is not there."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.backends import docker_probe
from sandbox.backends.docker_probe import probe


def test_an_engine_that_is_away_is_one_finding_with_the_remedy() -> None:
    (found,) = probe(url="unix:///nowhere/docker.sock")
    assert not found.is_ok
    assert "does not answer" in found.detail
    assert "DOCKER_HOST" in found.remedy


@pytest.mark.docker
def test_an_engine_says_what_it_is_and_what_is_missing() -> None:
    found = {finding.name: finding for finding in probe(bases=("ratchet/no-such-image:1",))}
    assert set(found) == {"engine", "limits", "runtime", "base image", "disk", "builder"}
    assert found["engine"].is_ok
    assert not found["base image"].is_ok
    assert "docker pull ratchet/no-such-image:1" in found["base image"].remedy
    refused = {finding.name: finding for finding in probe(runtime="no-such-runtime")}
    assert not refused["runtime"].is_ok
    assert "base image" not in refused


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"SecurityOptions": ["name=seccomp"], "MemoryLimit": False}, "not enforced: memory"),
        ({"SecurityOptions": [], "PidsLimit": False}, "processes, system calls (seccomp)"),
    ],
)
def test_limits_that_an_engine_cannot_enforce_are_named(info: dict[str, Any], said: str) -> None:
    found = docker_probe._limits(info)
    assert not found.is_ok
    assert said in found.detail
