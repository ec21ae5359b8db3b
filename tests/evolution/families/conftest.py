"""Real sandboxes for tests of operators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.trial import Runner


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Runs trials in bubblewrap sandboxes."""
    home = tmp_path_factory.mktemp("operators")
    backend = BubblewrapBackend(runtime_dir=home / "run", cache_dir=home / "cache")
    yield Runner(backend)
    backend.close()
