"""The Docker engine's API as far as it is used here, with its failures in our words."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import docker
import requests
import urllib3.exceptions
from docker.errors import APIError, DockerException, NotFound

from sandbox.backends.docker_stream import DriverStream
from sandbox.backends.docker_watch import held_bytes, written_bytes
from sandbox.errors import Refused, SandboxUnavailable

LABEL = "ratchet"
"""On everything that we make; its value names the kind of thing."""
OWNER_LABEL = "ratchet.owner"
HOST_LABEL = "ratchet.host"
HOME_LABEL = "ratchet.home"

_BROKEN = (
    DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,  # a stream that breaks off while it is read
    OSError,
)


def one_line(text: object, limit: int = 400) -> str:
    """A message on one line."""
    return " ".join(str(text).split())[:limit]


def message_of(error: BaseException) -> str:
    """What the engine said, on one line, without the URL that it was asked by."""
    explanation = getattr(error, "explanation", None)
    return one_line(explanation or error)


@contextlib.contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """What the engine refuses, or its absence, becomes SandboxUnavailable with one line."""
    try:
        yield
    except APIError as error:
        raise SandboxUnavailable(f"Docker could not {doing}: {message_of(error)}") from error
    except _BROKEN as error:
        raise SandboxUnavailable(
            f"the Docker engine does not answer (asked to {doing}): {one_line(error, 200)}"
        ) from error


class Engine:
    """A connection to an engine; may be used by many threads."""

    def __init__(self, url: str | None = None, *, timeout_seconds: float = 120.0) -> None:
        timeout = math.ceil(timeout_seconds)
        with engine_errors("connect"):
            if url is not None:
                api = docker.APIClient(base_url=url, timeout=timeout)
            else:
                api = docker.from_env(timeout=timeout).api
            self.api: Any = api  # of which more is used than its stubs know

    def close(self) -> None:
        """Let go of the connections."""
        self.api.close()


class Container:
    """One container of ours, whose name is known before it is made."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self.is_made = False
        self._folders: tuple[str, ...] | None = None
        self._first_pid = 0

    def create(self, config: Mapping[str, Any]) -> None:
        """Make it. Raises SandboxUnavailable."""
        with engine_errors("create a container"):
            self.engine.api.create_container_from_config(dict(config), self.name)
        self.is_made = True

    def start(self) -> DriverStream:
        """Attach to the container's root process and start it.

        Raises Refused when the image lacks bash, else SandboxUnavailable.
        """
        api = self.engine.api
        with engine_errors("attach to a container"):
            sock = api.attach_socket(
                self.name, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
        stream = _stream(sock)
        try:
            with engine_errors("start a container"):
                api.start(self.name)
        except SandboxUnavailable as error:
            stream.close()
            if "executable file not found" in str(error):
                raise Refused("the image has no bash, which a sandbox needs") from error
            raise
        return stream

    def open_driver(self, command: Sequence[str], user: str) -> DriverStream:
        """Start another driver in the running container, for another user."""
        api = self.engine.api
        with engine_errors("run a command in a container"):
            made = api.exec_create(self.name, list(command), stdin=True, user=user, workdir="/")
            return _stream(api.exec_start(made["Id"], socket=True))

    def inspect(self, *, has_size: bool = False) -> dict[str, Any]:
        """What the engine knows of it. Raises SandboxUnavailable."""
        api = self.engine.api
        with engine_errors("look at a container"):
            answer = api._get(
                api._url("/containers/{0}/json", self.name), params={"size": int(has_size)}
            )
            found: dict[str, Any] = api._result(answer, True)
        return found

    def written_bytes(self, enough: int) -> int:
        """What was written to its own layer and volumes, deleted files included while they are
        open; see `docker_watch`.

        Raises SandboxUnavailable.
        """
        if self._folders is None:
            found = self.inspect()
            layer: str = ((found.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir", "")
            mounts = [m["Source"] for m in found.get("Mounts") or () if m.get("Type") == "volume"]
            is_near = bool(layer) and os.access(layer, os.R_OK | os.X_OK)
            self._folders = (str(layer), *mounts) if is_near else ()
            self._first_pid = int((found.get("State") or {}).get("Pid") or 0)
        if self._folders:
            with engine_errors("let a container be measured"):
                return written_bytes(self._folders, enough) + held_bytes(self._first_pid)
        return int(self.inspect(has_size=True).get("SizeRw") or 0)

    def why_ended(self) -> str:
        """One line about a container whose stream was lost."""
        try:
            state = self.inspect()["State"]
        except SandboxUnavailable as error:
            if isinstance(error.__cause__, NotFound):
                return "the container was removed from outside"
            return str(error)
        if state.get("Running"):
            return "the container runs but does not answer"
        if state.get("OOMKilled"):
            return "the container ran out of memory and ended"
        return f"the container was ended from outside (status {state.get('ExitCode')})"

    def remove(self) -> bool:
        """End and remove it with its volumes; False when there was none.

        Raises SandboxUnavailable.
        """
        try:
            with engine_errors("remove a container"):
                self.engine.api.remove_container(self.name, v=True, force=True)
        except SandboxUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, NotFound):
                return False
            if not (isinstance(cause, APIError) and "already in progress" in str(cause)):
                raise
        return True


def _stream(answer: Any) -> DriverStream:
    """A stream from what the SDK gives for a hijacked connection."""
    sock: socket.socket = getattr(answer, "_sock", answer)
    response = getattr(answer, "_response", None)

    def close() -> None:
        answer.close()
        if response is not None:
            response.close()

    return DriverStream(sock, close, _read_ahead(sock, response))


def _read_ahead(sock: socket.socket, response: Any) -> bytes:
    """What of the stream was already read together with the head of the engine's answer."""
    reader = getattr(getattr(getattr(response, "raw", None), "_fp", None), "fp", None)
    if reader is None:
        return b""
    sock.setblocking(False)
    try:
        return bytes(reader.peek() or b"")
    except OSError:
        return b""
    finally:
        sock.setblocking(True)
