"""The ways to run sandboxes, by name, each with a home of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.proxy import EngineProxy
from sandbox import reaper
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.base import Backend

NAMES = ("docker", "bubblewrap-image", "bubblewrap")


def default_home() -> Path:
    """Where built images are kept between runs.

    Not below `var/`, which only its owner may enter: the raw floor works as another user.
    """
    home = Path(tempfile.gettempdir()) / f"ratchet-bench-{os.geteuid()}"
    home.mkdir(mode=0o755, exist_ok=True)
    return home


@contextmanager
def opened(name: str, home: Path, *, docker_host: str | None = None) -> Iterator[Backend]:
    """A back-end of ours, closed at the end. `docker_host`: an engine other than the usual one."""
    with ExitStack() as stack:
        runtime, cache = home / "sandboxes", home / "cache"
        if name == "bubblewrap":
            backend: Backend = BubblewrapBackend(runtime, cache)
        else:
            raise ValueError(f"no back-end {name!r}; there are {', '.join(NAMES)}")
        stack.callback(backend.close)
        yield backend


@contextmanager
def opened_behind_proxy(name: str, home: Path) -> Iterator[tuple[Backend, EngineProxy | None]]:
    """A back-end whose engine, if it has one, is reached by way of a proxy that can break."""
    with ExitStack() as stack:
        proxy = None
        yield stack.enter_context(opened(name, home)), proxy


def reap(name: str, home: Path) -> None:
    """One pass of the reaper over what a back-end of this home could have left."""
    reaper.reap(home / "sandboxes", home / "cache")
