"""A small OpenAI-compatible endpoint on a real socket, whose answers are scripted per request."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """What the endpoint does with its n-th request, and what it was asked.

    `acts` are used up one after another; then everything is answered with "well done".
    """

    acts: list[Callable[[Handler], None]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        script = self.script
        body = self.rfile.read(int(self.headers["content-length"]))
        with script.lock:
            script.requests.append(json.loads(body))
            script.headers.append({k.lower(): v for k, v in self.headers.items()})
            act = script.acts.pop(0) if script.acts else say("well done")
            script.at_once += 1
            script.most_at_once = max(script.most_at_once, script.at_once)
        try:
            act(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with script.lock:
                script.at_once -= 1

    def send(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        length: int | None = None,
        **headers: str,
    ) -> None:
        """A whole answer; `length` lies about its size."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


Act = Callable[[Handler], None]


def completion(**changes: Any) -> dict[str, Any]:
    """A chat completion as OpenAI writes it."""
    message = {"role": "assistant", "content": changes.pop("content", "well done")}
    message.update(changes.pop("message", {}))
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tiny",
        "choices": [
            {"index": 0, "message": message, "finish_reason": changes.pop("finish", "stop")}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        **changes,
    }


def say(content: str, **changes: Any) -> Act:
    """Answer with a text."""
    return reply(completion(content=content, **changes))


def reply(value: object) -> Act:
    """Answer with any JSON."""
    body = json.dumps(value).encode()
    return lambda handler: handler.send(200, body)


def call_tool(name: str, arguments: str, call_id: str = "call_abc") -> Act:
    """Answer with a tool call."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return say("", message={"content": None, "tool_calls": [call]}, finish="tool_calls")


def fail(status: int, message: str = "no", code: str = "", **headers: str) -> Act:
    """Answer with an error as OpenAI writes it."""
    body = json.dumps({"error": {"message": message, "type": "t", "code": code}}).encode()
    return lambda handler: handler.send(status, body, **headers)


def reset(handler: Handler) -> None:
    """Break the connection off without a word."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def html(handler: Handler) -> None:
    """What a proxy says when it has nothing to say."""
    handler.send(200, b"<html>gateway</html>", "text/html")


def hang(handler: Handler) -> None:
    """Never answer."""
    handler.script.stopping.wait(30)


def drip(handler: Handler) -> None:
    """One byte now and then."""
    body = json.dumps(completion()).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for byte in body:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        if handler.script.stopping.wait(0.2):
            return


def cut(handler: Handler) -> None:
    """Announce more than is sent, and close in the middle of the JSON."""
    body = json.dumps(completion()).encode()
    handler.send(200, body[: len(body) // 2], length=len(body))
    handler.close_connection = True


def flood(size: int, *, announced: bool = False) -> Act:
    """A body of `size` bytes in pieces, as far as anybody reads it."""

    def act(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        if announced:
            handler.send_header("Content-Length", str(size))
        handler.send_header("Connection", "close")
        handler.end_headers()
        piece = b" " * 65536
        sent = 0
        while sent < size and not handler.script.stopping.is_set():
            handler.wfile.write(piece)
            sent += len(piece)
        handler.close_connection = True

    return act


def pause(seconds: float) -> Act:
    """Answer, after a while."""

    def act(handler: Handler) -> None:
        time.sleep(seconds)
        say("well done")(handler)

    return act


@contextmanager
def endpoint(*acts: Act) -> Iterator[Script]:
    """A running endpoint."""
    script = Script(list(acts))
    kind = type("ScriptedHandler", (Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield script
    finally:
        script.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()
