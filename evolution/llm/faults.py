"""How an attempt that brought no answer ended, and whether to try again.

The set of outcomes is closed. What no rule knows counts as malformed: an endpoint that makes the
client stumble has not answered.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pydantic_ai import exceptions as ai

from evolution.llm.calls import CallOutcome
from evolution.llm.transport import Exchange
from evolution.plain_text import plain

RETRY_AFTER_CAP = 60.0
"""Seconds; an endpoint that asks for a longer pause is asked again after this one."""

WAIT_CAP = 60.0
"""Seconds between two attempts at most."""

_TOO_LONG = re.compile(r"(?i)\bexceeds? the (?:available )?context (?:size|length|window)")
"""How servers word it that the client does not know to mean that: llama.cpp's."""

RETRIED = frozenset(
    {
        CallOutcome.RATE_LIMITED,
        CallOutcome.SERVER_ERROR,
        CallOutcome.CONNECTION,
        CallOutcome.TIMEOUT,
        CallOutcome.MALFORMED,
        CallOutcome.TOO_LARGE,
    }
)
"""Faults of the moment. The others need less text, another request, or the operator."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt brought no answer.

    `is_lasting`: only the operator can change it. `is_paid`: a whole answer was paid for.
    """

    outcome: CallOutcome
    reason: str
    retry_after: float | None = None
    is_lasting: bool = False
    is_paid: bool = False

    @property
    def is_retried(self) -> bool:
        """Whether the same request may do better the next time."""
        return self.outcome in RETRIED and not self.is_lasting


def classify(error: BaseException, exchange: Exchange, now: datetime | None = None) -> Fault:
    """What an attempt's exception means; the exchange's own finding comes first."""
    if exchange.outcome is not None:
        return Fault(
            exchange.outcome,
            exchange.reason,
            is_lasting=300 <= exchange.status < 400,
            is_paid=exchange.outcome is CallOutcome.TOO_LARGE,
        )
    if isinstance(error, ai.ModelAPIError):
        return _of_api(error, exchange, now or datetime.now(UTC))
    if isinstance(error, TimeoutError):
        return Fault(CallOutcome.TIMEOUT, _late(exchange))
    if isinstance(error, ai.AgentRunError):
        return Fault(CallOutcome.MALFORMED, f"the answer makes no sense: {_first_line(error)}")
    return Fault(CallOutcome.MALFORMED, f"the answer cannot be read: {type(error).__name__}")


def _of_api(error: ai.ModelAPIError, exchange: Exchange, now: datetime) -> Fault:
    said = _said(error, exchange)
    pause = retry_after_seconds(exchange.retry_after, now)
    match error:
        case ai.ModelTimeoutError() | ai.ModelRequestTimeout():
            return Fault(CallOutcome.TIMEOUT, _late(exchange))
        case ai.ModelConnectionError():
            return Fault(CallOutcome.CONNECTION, f"{_broken(exchange)}: {_cause(error)}")
        case ai.ModelQuotaExceededError():
            return Fault(CallOutcome.RATE_LIMITED, f"the quota is used up{said}", is_lasting=True)
        case ai.ModelRateLimitError():
            return Fault(CallOutcome.RATE_LIMITED, f"too many requests{said}", pause)
        case ai.ModelUnavailableError() | ai.ModelServerError():
            return Fault(CallOutcome.SERVER_ERROR, f"the endpoint failed{said}", pause)
        case ai.ModelContextWindowExceededError():
            return Fault(CallOutcome.CONTEXT_OVERFLOW, f"the request is too long{said}")
        case ai.ModelAuthenticationError():
            return Fault(CallOutcome.AUTH, f"the key is not accepted{said}", is_lasting=True)
        case ai.ModelNotFoundError():
            return Fault(CallOutcome.BAD_REQUEST, f"no such model there{said}", is_lasting=True)
    return _of_status(exchange, said, pause)


def _of_status(exchange: Exchange, said: str, pause: float | None) -> Fault:
    status = exchange.status
    if status in {408, 504}:
        return Fault(CallOutcome.TIMEOUT, f"the endpoint ran out of time{said}", pause)
    if status in {409, 425, 429}:
        return Fault(CallOutcome.RATE_LIMITED, f"the endpoint asks to wait{said}", pause)
    if status == 413 or (400 <= status < 500 and _TOO_LONG.search(said)):
        return Fault(CallOutcome.CONTEXT_OVERFLOW, f"the request is too long{said}")
    if status >= 500:
        return Fault(CallOutcome.SERVER_ERROR, f"the endpoint failed{said}", pause)
    if status >= 400:
        return Fault(CallOutcome.BAD_REQUEST, f"the request is refused{said}")
    return Fault(CallOutcome.MALFORMED, f"the answer cannot be read{said}")


def _late(exchange: Exchange) -> str:
    """How an answer did not come in time."""
    if exchange.received:
        return f"no whole answer in time: it comes too slowly, {exchange.received} bytes so far"
    return "no answer in time: nothing came at all"


def _broken(exchange: Exchange) -> str:
    """Where a connection broke."""
    if exchange.received:
        return "the connection ended in the middle of the answer"
    if exchange.sent:
        return "the connection broke before an answer came"
    return "the connection failed"


def _said(error: ai.ModelAPIError, exchange: Exchange) -> str:
    """Status and message of the endpoint, in one line."""
    parts = []
    if isinstance(error, ai.ModelHTTPError):
        parts.append(str(error.status_code))
    if exchange.head.lstrip()[:1] == b"<":
        parts.append("a page of HTML")
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(message, str) and message.strip():
            parts.append(plain(message)[:200])
    return f" ({': '.join(parts)})" if parts else ""


def _cause(error: BaseException) -> str:
    """The innermost cause's own words, or its kind."""
    while error.__cause__ is not None:
        error = error.__cause__
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return plain(str(error).partition("\n")[0])[:200] or type(error).__name__


def retry_after_seconds(text: str, now: datetime) -> float | None:
    """What a Retry-After header asks for, in seconds from now; None when it says nothing."""
    text = text.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII):
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


def wait_seconds(fault: Fault, key: str, attempt: int, backoff: float) -> float:
    """How long to wait after an attempt (counted from 1), doubling, with jitter drawn from the key.

    The jitter takes up to half away, so that callers turned away together come back apart.
    """
    digest = hashlib.sha256(f"{key}/{attempt}".encode()).digest()
    jitter = int.from_bytes(digest[:4]) / 2**32
    grown: float = min(WAIT_CAP, backoff * 2.0 ** (attempt - 1)) * (1 - jitter / 2)
    return max(grown, min(fault.retry_after or 0.0, RETRY_AFTER_CAP))
