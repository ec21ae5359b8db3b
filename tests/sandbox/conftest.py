"""One back-end of each kind for all tests of the folder, in a path with a space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import NetworkMode
from tests.sandbox import fragile
from tests.sandbox.conformance import Bench
from tests.sandbox.room import room_for_four

if TYPE_CHECKING:
    from sandbox.backends.docker import DockerBackend


@pytest.fixture(scope="session")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    home = tmp_path_factory.mktemp("with a space")
    backend = BubblewrapBackend(home / "run time", home / "ca:che, too", places=room_for_four(home))
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def bench(bubblewrap: BubblewrapBackend) -> Bench:
    return Bench(
        lambda _script: bubblewrap,
        "bubblewrap",
        fragile=lambda: fragile.bubblewrap_that_may_die(bubblewrap),
    )


@pytest.fixture(scope="session")
def docker_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("with a space too")


@pytest.fixture(scope="session")
def docker(docker_home: Path) -> Iterator[DockerBackend]:
    from sandbox.backends.docker import DockerBackend

    places = room_for_four(docker_home)
    backend = DockerBackend(docker_home / "run time", docker_home / "ca:che, too", places=places)
    yield backend
    fragile.remove_all_of(backend)
    backend.close()


@pytest.fixture(scope="session")
def docker_bench(docker: DockerBackend) -> Bench:
    return Bench(
        lambda _script: docker,
        "docker",
        frozenset((NetworkMode.NO_NETWORK, NetworkMode.PUBLIC)),
        fragile=lambda: fragile.docker_that_may_be_lost(docker),
    )


@pytest.fixture(scope="session")
def image_bench(tmp_path_factory: pytest.TempPathFactory, docker: DockerBackend) -> Iterator[Bench]:
    home = tmp_path_factory.mktemp("with a space three")
    places = room_for_four(home)
    backend = BubblewrapBackend(home / "run time", home / "ca:che", places=places, images=docker)
    yield Bench(
        lambda _script: backend,
        "bubblewrap-image",
        fragile=lambda: fragile.bubblewrap_that_may_die(backend),
    )
    backend.close()


@pytest.fixture(scope="session")
def any_bench(request: pytest.FixtureRequest) -> Bench:
    """The bench of the kind that the test is parametrised with."""
    names = {"bubblewrap": "bench", "bubblewrap-image": "image_bench", "docker": "docker_bench"}
    found: Bench = request.getfixturevalue(names[request.param])
    return found
