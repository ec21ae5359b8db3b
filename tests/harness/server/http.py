"""The server itself: threads, HTTP/1.1, and every fault as it comes over a real connection."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.harness.server.faults import SLUGGISH, Fault, FaultPlan, spoiled
from tests.harness.server.wire import (
    Ask,
    BadAsk,
    Reply,
    Script,
    chunks,
    completion,
    parse,
    usage_of,
)

HUGE_BYTES = 10 * 1024 * 1024
_PAGE = b"<!DOCTYPE html><html><body><h1>Welcome</h1><p>Sign in to go on.</p></body></html>"
_ERRORS = {
    Fault.RATE_LIMITED: (429, "rate_limit_exceeded", "Rate limit reached"),
    Fault.SERVER_ERROR: (500, "server_error", "The server had an error"),
    Fault.OVERLOADED: (503, "overloaded", "The engine is overloaded"),
    Fault.CONTEXT: (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens; your messages resulted in more.",
    ),
}


def _falsify(piece: dict[str, Any], fault: Fault | None) -> None:
    """Put a fault into an answer, or a piece of one, that is otherwise as it should be."""
    if fault is Fault.WRONG_MODEL:
        piece["model"] = "gpt-of-somebody-else"
    elif fault is Fault.NAN_USAGE and "usage" in piece:
        nan = float("nan")
        piece["usage"] = {"prompt_tokens": nan, "completion_tokens": -5, "total_tokens": nan}
    elif fault is Fault.HUGE and piece["choices"]:
        choice = piece["choices"][0]
        choice.get("message", choice.get("delta"))["content"] = "x" * HUGE_BYTES


@dataclass(frozen=True)
class Served:
    """One call as the server saw it. `usage` is what it told, None where it told nothing usable."""

    number: int
    digest: str
    attempt: int
    model: str
    fault: Fault | None
    usage: Mapping[str, int] | None
    authorization: str


@dataclass
class ModelServer:
    """Serves models until it is left as a context; listens on this machine alone.

    `latency` is added to every answer, in seconds. `served` has every call, in order. `at_call` is
    told the number of each call before it is answered: the place for what a test does meanwhile.
    """

    scripts: Mapping[str, Script]
    faults: FaultPlan = field(default_factory=FaultPlan)
    latency: float = 0.0
    port: int = 0
    at_call: Any = None
    served: list[Served] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    _attempts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._http = _Threads(("127.0.0.1", self.port), _Handler)
        self._http.models = self
        self.port = self._http.server_address[1]
        threading.Thread(
            target=self._http.serve_forever, args=(0.05,), daemon=True, name="models"
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        if self.errors and error is None:
            raise self.errors[0]

    @property
    def url(self) -> str:
        """The base URL, as an OpenAI client wants it."""
        return f"http://127.0.0.1:{self.port}/v1"

    def begin(self, ask: Ask) -> tuple[int, int, Fault | None]:
        """Number, attempt and fault of a call that has just come in."""
        with self._lock:
            self._attempts[ask.digest] += 1
            attempt = self._attempts[ask.digest]
            number = self._attempts.total()
        if self.at_call is not None:
            self.at_call(number)
        return number, attempt, self.faults.draw(ask, attempt, number)

    def answer(self, ask: Ask, fault: Fault | None) -> Reply | None:
        """What the asked model says; None when there is no such model."""
        script = self.scripts.get(ask.model)
        if script is None:
            return None
        try:
            reply = script(ask)
        except Exception as error:
            self.errors.append(error)  # a model that stumbles spoils the test, not the connection
            return Reply()
        return reply if fault is None else spoiled(fault, ask, reply)

    def end(self, call: Served) -> None:
        """Keep a call that was served."""
        with self._lock:
            self.served.append(call)

    def wait(self, seconds: float) -> bool:
        """Idle; True as soon as the server closes."""
        return self._closing.wait(seconds)

    def told(self) -> int:
        """All tokens that were told to callers, as usage that can be used."""
        return sum(call.usage["total_tokens"] for call in self.served if call.usage is not None)


class _Threads(ThreadingHTTPServer):
    models: ModelServer
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers that hang up are part of the game."""


class _Handler(BaseHTTPRequestHandler):
    server: _Threads
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024

    @property
    def models(self) -> ModelServer:
        """Whom this connection reached."""
        return self.server.models

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: `served` has it all."""

    def do_GET(self) -> None:
        """The list of models."""
        if self.path.rstrip("/") != "/v1/models":
            self._error(404, "not_found", f"no {self.path}")
            return
        names = sorted(self.models.scripts)
        self._json({"object": "list", "data": [{"id": n, "object": "model"} for n in names]})

    def do_POST(self) -> None:
        """A chat completion."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._error(404, "not_found", f"no {self.path}")
            return
        try:
            ask = parse(body)
        except BadAsk as error:
            self._error(400, "invalid_request_error", str(error))
            return
        number, attempt, fault = self.models.begin(ask)
        reply = self.models.answer(ask, fault)
        if reply is None:
            self._error(404, "model_not_found", f"The model `{ask.model}` does not exist")
            return
        tells = fault is None or not fault.is_passing or fault is Fault.WRONG_MODEL
        usage = usage_of(ask, reply) if tells and fault is not Fault.CONTEXT else None
        key = self.headers.get("authorization", "")
        self.models.end(Served(number, ask.digest, attempt, ask.model, fault, usage, key))
        if self.models.latency:
            self.models.wait(self.models.latency)
        with suppress(OSError):  # the caller has hung up
            self._serve(ask, reply, fault)

    def _serve(self, ask: Ask, reply: Reply, fault: Fault | None) -> None:
        if fault in _ERRORS:
            more = {"retry-after": self.models.faults.retry_after}
            self._error(*_ERRORS[fault], more if fault is Fault.RATE_LIMITED else {})
            return
        if fault is Fault.BAD_GATEWAY or fault is Fault.HTML:
            self._body(502 if fault is Fault.BAD_GATEWAY else 200, _PAGE, "text/html")
            return
        pieces = list(chunks(ask, reply)) if ask.is_streamed else [completion(ask, reply)]
        for piece in pieces[:1] if fault is Fault.HUGE else pieces:
            _falsify(piece, fault)
        texts = [json.dumps(piece).encode() for piece in pieces]
        if ask.is_streamed:
            texts = [b"data: %b\n\n" % text for text in [*texts, b"[DONE]"]]
        kind = "text/event-stream" if ask.is_streamed else "application/json"
        body = b"".join(texts)
        if fault is Fault.RESET:
            self._reset()
        elif fault in SLUGGISH:
            self._dawdle(body, kind, fault)
        elif fault is Fault.TRUNCATED:
            self._body(200, body[: len(body) // 2], kind)
        elif fault is Fault.CUT:
            self._head(200, len(body), kind)
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self._reset()
        elif ask.is_streamed:
            self._stream(texts, kind)
        else:
            self._body(200, body, kind)

    def _dawdle(self, body: bytes, kind: str, fault: Fault | None) -> None:
        if fault is Fault.SLOW:
            self._head(200, len(body), kind)
        end = time.monotonic() + 120
        for byte in body:
            if fault is Fault.SLOW:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            if self.models.wait(1.0) or self._is_gone() or time.monotonic() > end:
                break
        self.close_connection = True

    def _is_gone(self) -> bool:
        """Whether the caller has hung up."""
        with suppress(BlockingIOError):
            return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return False

    def _reset(self) -> None:
        """End the connection with a reset, not in order."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def _stream(self, texts: Iterable[bytes], kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for text in texts:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(text), text))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _json(self, answer: dict[str, Any], status: int = 200) -> None:
        self._body(status, json.dumps(answer).encode(), "application/json")

    def _error(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        body = json.dumps({"error": {"message": message, "type": code, "code": code}}).encode()
        self._body(status, body, "application/json", headers)

    def _body(
        self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._head(status, len(body), kind, headers)
        self.wfile.write(body)

    def _head(
        self, status: int, length: int, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
