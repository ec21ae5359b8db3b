"""A container's file system as one readable stream."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from sandbox.backends.docker_engine import Engine, engine_errors


@contextmanager
def exported(engine: Engine, key: str) -> Iterator[IO[bytes]]:
    """The tar stream of a container. Raises SandboxUnavailable, also while it is read."""
    api = engine.api
    with engine_errors("export an image"):
        answer = api._get(api._url("/containers/{0}/export", key), stream=True)
        api._raise_for_status(answer)
    try:
        yield io.BufferedReader(Body(answer.raw), 1 << 20)
    finally:
        answer.close()


class Body(io.RawIOBase):
    """The body of an answer, to be read once."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See RawIOBase."""
        with engine_errors("send a file system"):
            data: bytes = self._body.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
