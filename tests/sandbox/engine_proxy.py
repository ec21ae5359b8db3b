"""A go-between for a Docker engine's socket that can be cut at any moment."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from docker.constants import DEFAULT_UNIX_SOCKET
from docker.utils import parse_host

_PIECE = 1 << 16


class EngineProxy:
    """Passes connections on to the engine of the environment until `cut`."""

    def __init__(self, folder: Path) -> None:
        path = folder / "engine.sock"
        self.url = f"unix://{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break every connection and take no more."""
        self._end(self._listener)
        for sock in list(self._open):
            self._end(sock)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                engine = socket.socket(socket.AF_UNIX)
                engine.connect(parse_host(DEFAULT_UNIX_SOCKET).removeprefix("http+unix://"))
                self._open |= {client, engine}
                for pair in ((client, engine), (engine, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    @staticmethod
    def _end(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


@contextlib.contextmanager
def engine_proxy() -> Iterator[EngineProxy]:
    """A proxy in a folder of its own, cut at the end."""
    with tempfile.TemporaryDirectory(prefix="proxy-") as folder:
        proxy = EngineProxy(Path(folder))
        yield proxy
        proxy.cut()
