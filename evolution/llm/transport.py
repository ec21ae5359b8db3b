"""HTTP to model endpoints, with bounds: no redirect, no answer without end, no nonsense as usage.

Loaded only when a model is really called.
"""

from __future__ import annotations

import json
import math
import re
import urllib.request
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2

from evolution.llm.calls import CallOutcome

ANSWER_LIMIT = 8 * 1024 * 1024
"""Bytes of one answer's body. The longest answers that models give are below a tenth of it."""

ERROR_LIMIT = 64 * 1024
"""Bytes of an error's body that are read; the rest is left."""

HEAD_BYTES = 2_000
"""Bytes of a body that could not be used, kept for people."""

CONNECT_SECONDS = 10.0


@dataclass(slots=True)
class Exchange:
    """What went over the wire in one attempt, whatever became of it."""

    sent: int = 0
    received: int = 0
    status: int = 0
    retry_after: str = ""
    head: bytes = b""
    outcome: CallOutcome | None = None
    reason: str = ""
    note: str = ""
    """What is odd about an answer that can be used all the same."""


current_exchange: ContextVar[Exchange | None] = ContextVar("current_exchange", default=None)
"""The exchange of the attempt at work; the transport writes into it."""


class Unusable(httpx2.TransportError):
    """The endpoint answered with something that is no answer; the exchange says what."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Passes requests on, and reads answers up to a limit."""

    def __init__(self, base_url: str = "") -> None:
        self._inner = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=20),
            proxy=_proxy_for(base_url),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request, one answer; Unusable for what must not be read on."""
        exchange = current_exchange.get() or Exchange()
        # Compressed answers could unpack to any size.
        request.headers["accept-encoding"] = "identity"
        exchange.sent = int(request.headers.get("content-length", "0"))
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            exchange.sent = 0
            raise
        exchange.status = response.status_code
        exchange.retry_after = response.headers.get("retry-after", "")
        try:
            return await _bounded(response, request, exchange)
        except BaseException:
            await response.aclose()
            raise

    async def aclose(self) -> None:
        """Close what is kept open."""
        await self._inner.aclose()


async def _bounded(
    response: httpx2.Response, request: httpx2.Request, exchange: Exchange
) -> httpx2.Response:
    if 300 <= response.status_code < 400:
        raise _unusable(
            exchange, CallOutcome.BAD_REQUEST, "the endpoint redirects, which is never followed"
        )
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _unusable(exchange, CallOutcome.MALFORMED, "the answer is compressed unasked")
    is_error = response.status_code >= 400
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream" and not is_error:
        stream = _CountedStream(response, exchange)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, request=request
        )
    body = await _read(response, exchange, ERROR_LIMIT if is_error else ANSWER_LIMIT, is_error)
    await response.aclose()
    exchange.head = body[:HEAD_BYTES]
    if not is_error:
        body = _checked(body, kind, exchange)
    headers = [
        (name, value)
        for name, value in response.headers.items()
        if name.lower() not in {"content-length", "transfer-encoding", "connection"}
    ]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


async def _read(
    response: httpx2.Response, exchange: Exchange, limit: int, is_cut_silently: bool
) -> bytes:
    """The body up to the limit; Unusable beyond it, unless the rest may be left unread."""
    body = bytearray()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for chunk in response.stream:
        exchange.received += len(chunk)
        body += chunk
        if len(body) > limit:
            if is_cut_silently:
                break
            exchange.head = bytes(body[:HEAD_BYTES])
            raise _too_large(exchange)
        exchange.head = bytes(body[:HEAD_BYTES])
    return bytes(body[:limit])


def _checked(body: bytes, kind: str, exchange: Exchange) -> bytes:
    """The body if it is a JSON object; its usage goes when it is no set of counts."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        shown = f"({kind or 'no content type'}, {len(body)} bytes)"
        raise _unusable(
            exchange, CallOutcome.MALFORMED, f"the answer is {_no_json(body)} {shown}"
        ) from None
    if not isinstance(value, dict):
        raise _unusable(exchange, CallOutcome.MALFORMED, "the answer is no JSON object")
    if not value.keys() & _ANSWERS:
        raise _unusable(exchange, CallOutcome.MALFORMED, f"the answer is none{_said(value)}")
    for name in ("usage", "usageMetadata"):
        if name in value and not _is_counts(value[name]):
            exchange.note = NO_USAGE
            del value[name]
            body = json.dumps(value).encode()
    return body


def _no_json(body: bytes) -> str:
    """What an answer is that is no JSON."""
    text = body.strip()
    if text[:1] == b"<":
        return "a page of HTML"
    if text[:1] == b"{" and text[-1:] != b"}":
        return "JSON that ends too early"
    return "no JSON"


_ANSWERS = frozenset({"choices", "content", "candidates", "promptFeedback"})
"""What every answer has one of, whoever gives it."""


def _said(value: dict[str, object]) -> str:
    """The message of an error that came as an answer."""
    error = value.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return f": {message[:200]}" if isinstance(message, str) else ""


_COUNTS = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"}
)


def _is_counts(value: object) -> bool:
    """Whether every number in there is a finite one that is not negative."""
    if isinstance(value, dict):
        counts = (inner for name, inner in value.items() if name in _COUNTS)
        return all(isinstance(count, int | None) for count in counts) and all(
            _is_counts(inner) for inner in value.values()
        )
    if isinstance(value, list):
        return all(_is_counts(inner) for inner in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) and 0 <= value < 2**53
    return True


NO_USAGE = "what it tells as usage is no count of tokens: estimated"
_NO_COUNT = re.compile(rb'_tokens"\s*:\s*(?:NaN|-)')

TAIL_BYTES = 16 * 1024
_ENDS = re.compile(rb'\[DONE\]|message_stop|"finish_?[rR]eason"\s*:\s*"')
"""What the last events of a whole answer have one of, whoever gives it."""


class _CountedStream(httpx2.AsyncByteStream):
    """A stream of events that ends at the limit, and not before the answer does."""

    def __init__(self, response: httpx2.Response, exchange: Exchange) -> None:
        self._response = response
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        tail = b""
        async for chunk in self._response.stream:
            self._exchange.received += len(chunk)
            tail = (tail + chunk)[-TAIL_BYTES:]
            if len(self._exchange.head) < HEAD_BYTES:
                self._exchange.head = (self._exchange.head + chunk)[:HEAD_BYTES]
            if self._exchange.received > ANSWER_LIMIT:
                raise _too_large(self._exchange)
            yield chunk
        if _NO_COUNT.search(tail):
            self._exchange.note = NO_USAGE
        if not _ENDS.search(tail):
            why = "the stream ended before the answer did"
            raise _unusable(self._exchange, CallOutcome.MALFORMED, why)

    async def aclose(self) -> None:
        await self._response.aclose()


def _unusable(exchange: Exchange, outcome: CallOutcome, reason: str) -> Unusable:
    exchange.outcome, exchange.reason = outcome, reason
    return Unusable(reason)


def _too_large(exchange: Exchange) -> Unusable:
    limit = ANSWER_LIMIT // (1024 * 1024)
    return _unusable(exchange, CallOutcome.TOO_LARGE, f"the answer is larger than {limit} MiB")


def _proxy_for(base_url: str) -> str | None:
    """The proxy that the process environment names for this URL, if any."""
    parts = httpx2.URL(base_url) if base_url else None
    scheme = parts.scheme if parts else "https"
    if parts and urllib.request.proxy_bypass(parts.host):
        return None
    return urllib.request.getproxies().get(scheme)


def http_client(base_url: str, timeout_seconds: float) -> httpx2.AsyncClient:
    """A client for one endpoint; to be used in one event loop only."""
    return httpx2.AsyncClient(
        transport=BoundedTransport(base_url),
        timeout=httpx2.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
        follow_redirects=False,
        trust_env=False,
    )
