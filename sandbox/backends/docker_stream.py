"""One attached stream per container, on which everything inside it is done.

A `docker exec` costs 50 to 120 ms and a container start 250; a line to a shell that waits inside
costs 2. The container's root process is `docker_driver.sh`; its standard streams are this stream.

Down: first a random key, then lines of bash that begin with it, written here and nowhere else,
every word quoted; after some of them, raw bytes of a length that the line names. Should the image's
tool not take them, they are no lines of ours: without the key nothing is obeyed.

Up: what the engine multiplexes, standard output and error. An answer on each of them is

    nonce  whatever the command wrote  nonce  exit status as three digits

with a fresh random nonce for each request. What comes between answers belongs to services that
an earlier command left behind, and is thrown away.

A solver that is root in its container may take its driver over, as it may take over whatever else
runs there. So an answer is data about that container and nothing more: it is bounded in size and
time, and no content of it is acted upon outside.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sandbox.errors import Refused, SandboxError

_CHUNK_BYTES = 1 << 18
_STATUS_BYTES = 3
_HEADER = struct.Struct(">BxxxL")
_STDOUT, _STDERR = 1, 2
_KILLED = 137
_GRACE_SECONDS = 20.0
_SEND_SECONDS = 120
_FIRST_BYTES = 400


def quoted(text: str) -> str:
    """A word of bash that means exactly these bytes. Raises Refused for a NUL."""
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise Refused(f"a NUL byte cannot be passed: {text!r}")
    plain = b"+,-./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    if data and all(byte in plain for byte in data):
        return data.decode("ascii")
    safe = plain + b' !#$%&()*;<>?[]^`{|}~"'
    body = "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in data)
    return f"$'{body}'"


def line_of(*words: str) -> str:
    """A line of bash from words, each quoted."""
    return " ".join(quoted(word) for word in words)


@dataclass
class Answer:
    """What a command wrote and how it ended. `is_late`: it was broken off at its deadline."""

    status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    is_truncated: bool = False
    is_late: bool = False


class StreamLost(Exception):
    """The stream ended or fell silent; the caller finds out why. `answer` is what came before."""

    def __init__(self, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer or Answer(_KILLED)


@dataclass
class _Side:
    """One of the two streams of one answer, searched for its nonce as it comes."""

    nonce: bytes
    cap_bytes: int
    sink: Callable[[bytes], None] | None = None
    kept: bytearray = field(default_factory=bytearray)
    pending: bytearray = field(default_factory=bytearray)
    has_begun: bool = False
    status: int | None = None
    is_truncated: bool = False

    def take(self, data: bytes) -> None:
        """Look at the next bytes."""
        if self.status is not None:
            return
        self.pending += data
        if not self.has_begun:
            at = self.pending.find(self.nonce)
            if at < 0:
                del self.pending[: -len(self.nonce)]
                return
            del self.pending[: at + len(self.nonce)]
            self.has_begun = True
        at = self.pending.find(self.nonce)
        if at < 0:
            ready = len(self.pending) - len(self.nonce) + 1
            if ready > 0:
                self._keep(bytes(self.pending[:ready]))
                del self.pending[:ready]
            return
        end = at + len(self.nonce)
        if len(self.pending) < end + _STATUS_BYTES:
            return
        digits = bytes(self.pending[end : end + _STATUS_BYTES])
        self.status = int(digits) if digits.isdigit() else 255
        self._keep(bytes(self.pending[:at]))
        self.pending.clear()

    def _keep(self, data: bytes) -> None:
        if self.sink is not None:
            self.sink(data)
            return
        room = self.cap_bytes - len(self.kept)
        self.kept += data[:room]
        self.is_truncated |= len(data) > room


class DriverStream:
    """The stream to one driver. One request at a time; `interrupt` may come from any thread.

    `early` are bytes of it that were read already.
    """

    def __init__(self, sock: socket.socket, close: Callable[[], None], early: bytes = b"") -> None:
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
        self._sock = sock
        self._close = close
        self._key = secrets.token_hex(16)
        self._has_key = False
        self._asking = threading.Lock()
        self._writing = threading.Lock()
        self._inbox = bytearray(early)
        self._first = bytearray(early[:_FIRST_BYTES])

    def ask(
        self,
        command: str,
        *,
        seconds: float,
        payload: Iterable[bytes] = (),
        cap_bytes: int = 1 << 20,
        sink: Callable[[bytes], None] | None = None,
        at_deadline: Callable[[], None] | None = None,
    ) -> Answer:
        """Send a line (with the bytes that it announces) and wait for its answer.

        `sink` receives standard output instead of the answer; when it raises a SandboxError the
        command is broken off and the error goes on. `at_deadline` is called when the time is over
        and must make the command end. Raises StreamLost, with what was received so far.
        """
        with self._asking:
            nonce = secrets.token_hex(16)
            self._send(f"begin {nonce}; {command}", payload)
            sides = {
                _STDOUT: _Side(nonce.encode(), cap_bytes, sink),
                _STDERR: _Side(nonce.encode(), cap_bytes),
            }
            return self._answer(sides, time.monotonic() + seconds, at_deadline)

    def interrupt(self, command: str) -> None:
        """Send a line that has no answer, to act on the request that is running."""
        self._send(command, ())

    @property
    def first_words(self) -> str:
        """The first bytes that came at all: the engine's own words where no driver starts."""
        return bytes(self._first).decode("utf-8", "replace")

    def close(self) -> None:
        """Let go of the connection. A request that is running loses its stream."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError, ValueError):
            self._close()

    def _send(self, command: str, payload: Iterable[bytes]) -> None:
        line = f"\n{self._key} {command}\n".encode("ascii")
        try:
            with self._writing:
                if not self._has_key:
                    line = self._key.encode("ascii") + line
                    self._has_key = True
                self._sock.sendall(line)
                for part in payload:
                    self._sock.sendall(part)
        except (OSError, ValueError) as error:
            raise StreamLost(f"nothing can be sent to the container: {error}") from error

    def _answer(
        self,
        sides: dict[int, _Side],
        deadline: float,
        at_deadline: Callable[[], None] | None,
    ) -> Answer:
        muted: set[int] = set()
        answer = Answer()
        failure: SandboxError | None = None
        while any(side.status is None for side in sides.values()):
            try:
                stream, data = self._receive(deadline)
            except TimeoutError:
                if at_deadline is None or answer.is_late:
                    raise StreamLost("the container does not answer", answer) from None
                answer.is_late = True
                deadline = time.monotonic() + _GRACE_SECONDS
                at_deadline()
                continue
            except StreamLost as lost:
                raise StreamLost(str(lost), _complete(answer, sides)) from lost
            if stream not in sides:
                continue
            side = sides[stream]
            try:
                side.take(data)
            except SandboxError as error:
                failure = failure or error
                side.sink = _forget
                self.interrupt("break_off")
            if side.is_truncated and stream not in muted:
                muted.add(stream)
                self.interrupt(f"mute {stream}")
        if failure is not None:
            raise failure
        return _complete(answer, sides)

    def _receive(self, deadline: float) -> tuple[int, bytes]:
        """The next piece of one of the streams."""
        while len(self._inbox) < _HEADER.size:
            self._fill(deadline)
        stream, size = _HEADER.unpack_from(self._inbox)
        end = _HEADER.size + size
        if size > 1 << 24:
            raise StreamLost("the engine's stream makes no sense")
        while len(self._inbox) < end:
            self._fill(deadline)
        data = bytes(self._inbox[_HEADER.size : end])
        del self._inbox[:end]
        return stream, data

    def _fill(self, deadline: float) -> None:
        try:
            if not self._wait(deadline):
                raise TimeoutError
            data = self._sock.recv(_CHUNK_BYTES)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise StreamLost(f"the container's stream broke: {error}") from error
        if not data:
            raise StreamLost("the container's stream ended")
        self._first += data[: _FIRST_BYTES - len(self._first)]
        self._inbox += data

    def _wait(self, deadline: float) -> bool:
        """Whether there is something to receive before the deadline."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        left = deadline - time.monotonic()
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return left > 0 and bool(poll.poll(left * 1000))


def _complete(answer: Answer, sides: dict[int, _Side]) -> Answer:
    stdout, stderr = sides[_STDOUT], sides[_STDERR]
    answer.status = _KILLED if stdout.status is None else stdout.status
    answer.stdout, answer.stderr = bytes(stdout.kept), bytes(stderr.kept)
    answer.is_truncated = stdout.is_truncated or stderr.is_truncated
    return answer


def _forget(_data: bytes) -> None:
    """For what is not wanted any more."""
