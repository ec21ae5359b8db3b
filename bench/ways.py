"""The ways to run sandboxes, by name, each with a home of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.proxy import EngineProxy
from sandbox import reaper
from sandbox.backends import docker_reaper
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.docker import DockerBackend
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
def opened(name: str, home: Path, *, engine: str | None = None) -> Iterator[Backend]:
    """A back-end of ours, closed at the end. `engine`: the URL of another one than the usual."""
    runtime, cache = home / "sandboxes", home / "cache"
    with ExitStack() as stack:
        backend: Backend
        if name == "docker":
            backend = DockerBackend(runtime, cache, url=engine)
        elif name == "bubblewrap-image":
            images = DockerBackend(runtime, cache, url=engine)
            stack.callback(images.close)
            backend = BubblewrapBackend(runtime, cache, images=images)
        elif name == "bubblewrap":
            backend = BubblewrapBackend(runtime, cache)
        else:
            raise ValueError(f"no back-end {name!r}; there are {', '.join(NAMES)}")
        stack.callback(backend.close)
        yield backend


@contextmanager
def opened_behind_proxy(name: str, home: Path) -> Iterator[tuple[Backend, EngineProxy | None]]:
    """A back-end whose engine, if trials need one, is reached by a proxy that can break."""
    with ExitStack() as stack:
        proxy = None
        if name == "docker":
            proxy = stack.enter_context(EngineProxy(engine_socket()))
        engine = proxy.url if proxy else None
        yield stack.enter_context(opened(name, home, engine=engine)), proxy


def engine_socket() -> Path:
    """The socket of this machine's engine. Raises ValueError when it is none."""
    url = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not url.startswith("unix://"):
        raise ValueError(f"DOCKER_HOST = {url}: connections are broken on a local engine only")
    return Path(url.removeprefix("unix://"))


def reap(name: str, home: Path) -> None:
    """One pass of the reaper over what a back-end of this home could have left.

    Raises SandboxUnavailable when the back-end needs an engine and none answers.
    """
    reaper.reap(home / "sandboxes", home / "cache")
    if name != "bubblewrap":
        docker_reaper.reap_engine()
