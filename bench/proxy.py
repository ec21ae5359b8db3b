"""A go-between for a Docker engine's socket that breaks connections in the middle of a request.

with EngineProxy(Path("/var/run/docker.sock")) as proxy:
    client = docker.DockerClient(base_url=proxy.url)
    proxy.break_at(3)      # the third piece of data from now on does not get through
"""

from __future__ import annotations

import contextlib
import selectors
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_PIECE = 256 * 1024


class EngineProxy:
    """Passes everything on until it is told to break a connection, or to be gone for a while."""

    def __init__(self, engine: Path) -> None:
        self.engine = engine
        self.folder = Path(tempfile.mkdtemp(prefix="ratchet-proxy-"))
        self.path = self.folder / "engine.sock"
        self.url = f"unix://{self.path}"
        self.broken = 0
        """How many connections were broken so far."""
        self._countdown = 0
        self._is_gone = self._will_go = False
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def break_at(self, piece: int, *, is_gone_after: bool = False) -> None:
        """Break the connection that brings so many pieces of data from now; then, if asked, all."""
        with self._lock:
            self._countdown = piece
            self._is_gone = False
            self._will_go = is_gone_after

    def disarm(self) -> None:
        """Pass everything on again."""
        with self._lock:
            self._countdown, self._is_gone = 0, False

    @property
    def connections(self) -> int:
        """How many are open; each holds three descriptors and a thread of this process."""
        with self._lock:
            return len(self._open) // 2

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            if self._is_gone:
                client.close()
                continue
            engine = socket.socket(socket.AF_UNIX)
            try:
                engine.connect(str(self.engine))
            except OSError:
                client.close()
                engine.close()
                continue
            threading.Thread(target=self._pass_on, args=(client, engine), daemon=True).start()

    def _pass_on(self, client: socket.socket, engine: socket.socket) -> None:
        with self._lock:
            self._open |= {client, engine}
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(client, selectors.EVENT_READ, engine)
                selector.register(engine, selectors.EVENT_READ, client)
                while selector.get_map():
                    for key, _events in selector.select():
                        if not self._move(selector, key):
                            return
        except OSError:
            pass  # it was closed from either end, or by us
        finally:
            with self._lock:
                self._open -= {client, engine}
            for end in (client, engine):
                end.close()

    def _move(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        """Pass one piece on; False when the connection is to be broken now."""
        source, target = key.fileobj, key.data
        assert isinstance(source, socket.socket)
        data = source.recv(_PIECE)
        if not data:  # one direction is over, the other may go on
            selector.unregister(source)
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)
            return True
        if self._is_last():
            return False
        target.sendall(data)
        return True

    def _is_last(self) -> bool:
        with self._lock:
            if self._is_gone:
                return True
            if self._countdown == 0:
                return False
            self._countdown -= 1
            if self._countdown:
                return False
            self.broken += 1
            self._is_gone = self._will_go
            if self._is_gone:
                for end in self._open:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
            return True

    def close(self) -> None:
        """End all connections."""
        self._listener.close()
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
