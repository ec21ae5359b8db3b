"""One back-end of each kind for all tests of the folder, in a path with a space."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.base import Backend
from tests.sandbox.conformance import Bench
from tests.sandbox.conformance_bench import host_children
from tests.sandbox.room import room_for_four

Cut = tuple[Backend, Callable[[], None]]


@pytest.fixture(scope="session")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    home = tmp_path_factory.mktemp("with a space")
    backend = BubblewrapBackend(home / "run time", home / "ca:che, too", places=room_for_four(home))
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def bench(bubblewrap: BubblewrapBackend) -> Bench:
    return Bench(lambda _script: bubblewrap, "bubblewrap", fragile=lambda: _fragile(bubblewrap))


@contextmanager
def _fragile(like: BubblewrapBackend) -> Iterator[Cut]:
    """A bubblewrap back-end whose processes may be killed."""
    before = set(host_children(os.getpid()))
    backend = BubblewrapBackend(like.runtime_dir, like.cache_dir, places=like.places)

    def cut() -> None:
        servers = set(host_children(os.getpid())) - before
        for pid in servers:
            for child in (*host_children(pid), pid):
                os.kill(child, signal.SIGKILL)

    yield backend, cut
    backend.close()
