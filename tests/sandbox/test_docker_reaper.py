"""What a killed owner left in the engine goes, and nothing of anybody else does."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import pytest

from sandbox.backends.docker_engine import HOST_LABEL, LABEL, OWNER_LABEL
from sandbox.backends.docker_reaper import host_label, reap_engine
from sandbox.contracts import Limits, NetworkMode, NetworkPolicy
from tests.sandbox.conformance import image_spec

if TYPE_CHECKING:
    from sandbox.backends.docker import DockerBackend

pytestmark = pytest.mark.docker

_ROOT = Path(__file__).resolve().parents[2]
_OWNER = """
import pathlib, sys, time
from sandbox.backends.docker import DockerBackend
from sandbox.contracts import Limits, NetworkMode, NetworkPolicy
from tests.sandbox.conformance import image_spec
home = pathlib.Path(sys.argv[1])
backend = DockerBackend(home / "r", home / "c")
policy = NetworkPolicy(NetworkMode(sys.argv[2]))
sandbox = backend.start(backend.prepare(image_spec()), Limits(cpus=0.1), policy)
print(sandbox.container.name, flush=True)
time.sleep(60)
"""


@pytest.fixture
def api() -> Iterator[Any]:
    client = docker.APIClient()
    yield client
    client.close()


def _names(api: Any) -> set[str]:
    return {found["Names"][0].lstrip("/") for found in api.containers(all=True)}


def _networks(api: Any) -> set[str]:
    return {found["Name"] for found in api.networks()}


def _killed_owner(home: Path, mode: NetworkMode) -> str:
    words = [sys.executable, "-c", _OWNER, str(home), mode.value]
    process = subprocess.Popen(words, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()
    return name


def test_a_killed_owner_leaves_neither_container_nor_network(
    tmp_path: Path, docker: DockerBackend, api: Any
) -> None:
    with docker.start(docker.prepare(image_spec()), Limits(cpus=0.1), NetworkPolicy()) as alive:
        before = _networks(api)
        name = _killed_owner(tmp_path, NetworkMode.PUBLIC)
        assert name in _names(api)
        made = _networks(api) - before
        reaped = reap_engine()
        assert reaped.containers >= 1
        assert name not in _names(api)
        assert not made & _networks(api)
        assert alive.container.name in _names(api)
        assert alive.exec(["true"], timeout_seconds=10).exit_status == 0


@pytest.mark.parametrize(
    ("labels", "is_removed"),
    [
        ({}, False),
        ({"ratchet-like": "sandbox"}, False),
        ({LABEL: "sandbox", OWNER_LABEL: "1.1", HOST_LABEL: "another machine"}, False),
        ({LABEL: "sandbox", OWNER_LABEL: f"{os.getpid()}.1", HOST_LABEL: "here"}, True),
        ({LABEL: "sandbox", HOST_LABEL: "here"}, True),
    ],
)
def test_only_what_has_lost_its_owner_goes(
    docker: DockerBackend, api: Any, labels: dict[str, str], is_removed: bool
) -> None:
    if labels.get(HOST_LABEL) == "here":
        labels = {**labels, HOST_LABEL: host_label()}
    name = f"reaper-test-{secrets.token_hex(6)}"
    image = docker.prepare(image_spec())
    api.create_container(image.ref, ["true"], name=name, labels=labels)
    try:
        reap_engine()
        assert (name not in _names(api)) is is_removed
    finally:
        if name in _names(api):
            api.remove_container(name, force=True)


def test_images_past_the_budget_go_the_oldest_first(docker: DockerBackend, api: Any) -> None:
    used = docker.cache_dir / "docker" / "used"
    own = [secrets.token_hex(8) for _ in range(3)]  # a layer that others have too counts nothing
    specs = [image_spec(f"FROM debian:bookworm-slim\nRUN echo {n} >/f\n".encode()) for n in own]
    images = [docker.prepare(spec) for spec in specs]
    now = time.time()
    for file in used.iterdir():
        os.utime(file, (now, now))
    for age, image in zip((3000, 9000, 0), images, strict=True):
        os.utime(used / image.digest, (now - age, now - age))

    def there() -> list[bool]:
        tags = {tag for row in api.images() for tag in row["RepoTags"] or ()}
        return [f"ratchet/env:{image.digest}" in tags for image in images]

    assert reap_engine(docker.cache_dir).images == 0
    assert there() == [True, True, True]
    reaped = reap_engine(docker.cache_dir, image_budget_bytes=0)
    assert (reaped.images, there()) == (2, [False, False, True])
    again = docker.prepare(specs[0])
    with docker.start(again, Limits(cpus=0.1), NetworkPolicy()) as sandbox:
        assert sandbox.exec(["cat", "/f"], timeout_seconds=10).stdout == f"{own[0]}\n".encode()
