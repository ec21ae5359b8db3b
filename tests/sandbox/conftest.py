"""One bubblewrap back-end for all tests of the folder, in a path with a space."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from tests.sandbox.conformance import Bench
from tests.sandbox.room import room_for_four


@pytest.fixture(scope="session")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    home = tmp_path_factory.mktemp("with a space")
    backend = BubblewrapBackend(home / "run time", home / "ca:che, too", places=room_for_four(home))
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def bench(bubblewrap: BubblewrapBackend) -> Bench:
    return Bench(lambda _script: bubblewrap)
