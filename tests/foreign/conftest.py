"""A runner on the Docker engine, with the toolchain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.toolchain import Toolchain
from sandbox.trial import Runner
from tests.conftest import ROOT
from tests.sandbox import fragile


@pytest.fixture(scope="session")
def docker_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    from sandbox.backends.docker import DockerBackend

    home = tmp_path_factory.mktemp("foreign")
    backend = DockerBackend(home / "run", home / "cache")
    yield Runner(backend, toolchain=Toolchain(ROOT / "var" / "toolchain"))
    fragile.remove_all_of(backend)
    backend.close()
