"""Back-ends that can be cut off from what holds their sandboxes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.base import Backend
from tests.sandbox.conformance_bench import host_children

if TYPE_CHECKING:
    from sandbox.backends.docker import DockerBackend

Cut = tuple[Backend, Callable[[], None]]


@contextmanager
def bubblewrap_that_may_die(like: BubblewrapBackend) -> Iterator[Cut]:
    """A back-end with processes of its own, which are killed."""
    before = set(host_children(os.getpid()))
    backend = BubblewrapBackend(
        like.runtime_dir, like.cache_dir, places=like.places, images=like.images
    )

    def cut() -> None:
        for pid in set(host_children(os.getpid())) - before:
            for child in (*host_children(pid), pid):
                os.kill(child, signal.SIGKILL)

    yield backend, cut
    backend.close()


class Proxy:
    """A socket that passes everything on to another one, until it is cut."""

    def __init__(self, at: Path, to: str) -> None:
        self.to = to
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(at))
        self.listener.listen(16)
        self.ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _address = self.listener.accept()
                theirs = socket.socket(socket.AF_UNIX)
                theirs.connect(self.to)
                self.ends += [ours, theirs]
                for one, other in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()

    def cut(self) -> None:
        """Break every connection off, and take no new one."""
        for sock in (self.listener, *self.ends):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


@contextmanager
def docker_that_may_be_lost(like: DockerBackend) -> Iterator[Cut]:
    """A back-end whose way to the engine is cut."""
    from sandbox.backends.docker import DockerBackend

    with TemporaryDirectory(prefix="ratchet-proxy-") as name:
        engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        proxy = Proxy(Path(name, "engine"), engine.removeprefix("unix://"))
        url = f"unix://{name}/engine"
        backend = DockerBackend(Path(name, "run"), Path(name, "cache"), url=url, places=like.places)
        try:
            yield backend, proxy.cut
        finally:
            proxy.cut()
            remove_all_of(backend)
            backend.close()
            shutil.rmtree(Path(name, "run"), ignore_errors=True)


def remove_all_of(backend: DockerBackend) -> None:
    """Remove every container, network and image that carries this back-end's label."""
    import docker

    from sandbox.backends.docker_engine import HOME_LABEL

    client = docker.from_env()
    ours = {"label": f"{HOME_LABEL}={backend.labels[HOME_LABEL]}"}
    for container in client.containers.list(all=True, filters=ours):
        container.remove(force=True, v=True)
    for network in client.networks.list(filters=ours):
        network.remove()
    for image in client.images.list(all=True, filters=ours):
        with contextlib.suppress(docker.errors.APIError):  # the parent of another one of ours
            client.images.remove(image.id, force=True)
    client.close()
