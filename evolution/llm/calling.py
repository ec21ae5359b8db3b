"""One call from its first attempt to its end, inside the event loop of the lines."""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass, field

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart

from evolution.llm.calls import (
    PAID_ATTEMPTS,
    BudgetStop,
    CallFailed,
    CallOutcome,
    CallRecord,
    ModelSpec,
    ModelUnavailable,
    StepBudgetStop,
    Usage,
)
from evolution.llm.canonical import answer_in, canonical, response_bytes
from evolution.llm.desk import Call, Desk
from evolution.llm.endpoints import endpoint_of, model_label, option
from evolution.llm.faults import Fault, classify, wait_seconds
from evolution.llm.lines import CircuitOpen, Line
from evolution.llm.providers import attempt_seconds, output_tokens
from evolution.llm.transport import Exchange, current_exchange
from evolution.plain_text import plain

ATTEMPTS = 5
BACKOFF_SECONDS = 1.0
DEADLINE_SECONDS = 1800.0
"""A call with all its attempts and waits at most."""

BYTES_PER_TOKEN = 4
"""For estimates only; what an endpoint reports is taken as it is."""

SETTLE_SECONDS = 60.0
"""What a reservation outlives the longest attempt by: it has to be recorded."""

EXPECTED_OUTPUT = 1_000
"""Tokens of an answer that a budget expects before the call."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How one attempt ended; `fault` is None when the model has spoken."""

    record: CallRecord
    fault: Fault | None = None


async def place_call(desk: Desk, call: Call) -> ModelResponse:
    """The answer, after as many attempts as the faults of the moment and the bounds allow.

    BudgetStop and StepBudgetStop before an attempt that would not fit; ModelUnavailable when the
    endpoint cannot be used now; CallFailed when this request has no answer.
    """
    line = desk.lines.line(call.spec)
    attempts = option(call.spec, "attempts", ATTEMPTS)
    backoff = option(call.spec, "backoff", BACKOFF_SECONDS)
    ends_at = time.monotonic() + option(call.spec, "deadline", DEADLINE_SECONDS)
    number = 0
    while True:
        number += 1
        ended = await _through(line, _Attempt(desk, call, number))
        if ended.fault is None:
            return answer_in(await desk.settled(ended.record))
        wait = wait_seconds(ended.fault, call.key, number, backoff)
        bound = PAID_ATTEMPTS if ended.fault.is_paid else attempts
        is_over = number >= min(bound, attempts) or time.monotonic() + wait > ends_at
        if is_over or not ended.fault.is_retried:
            # Without a cause: what the client raised may hold the request with its key.
            raise _given_up(call, ended.record) from None
        await asyncio.sleep(wait)


async def _through(line: Line, attempt: _Attempt) -> _Ended:
    """One attempt, recorded; the breaker and the budget are told how it ended."""
    try:
        async with line.slot():
            ended = await attempt.made()
            if ended.fault is None or ended.fault.outcome in _ENDPOINT_IS_WELL:
                line.breaker.succeeded()
            elif ended.fault.outcome is CallOutcome.RATE_LIMITED and not ended.fault.is_lasting:
                line.hold(wait_seconds(ended.fault, attempt.call.key, 1, 0.0))
            else:
                line.breaker.failed(time.monotonic(), at_once=ended.fault.is_lasting)
            return ended
    except CircuitOpen as error:
        fault = Fault(CallOutcome.CIRCUIT_OPEN, str(error))
        ended = _Ended(attempt.record(fault.outcome, fault.reason), fault)
        await attempt.desk.keep(ended.record)
        return ended


_ENDPOINT_IS_WELL = frozenset(
    {CallOutcome.CONTEXT_OVERFLOW, CallOutcome.TOO_LARGE, CallOutcome.BAD_REQUEST}
)


@dataclass(slots=True)
class _Attempt:
    """One attempt at a call."""

    desk: Desk
    call: Call
    number: int
    exchange: Exchange = field(default_factory=Exchange)
    started: float = 0.0

    async def made(self) -> _Ended:
        """Reserve, ask, record, settle."""
        expected, reserved = await self._reserve()
        self.started = time.monotonic()
        ended: _Ended | None = None
        why = "stopped by the caller"
        try:
            ended = await self._ask()
            return ended
        except Exception as error:
            why = f"ended by {type(error).__name__}"
            raise
        finally:
            ended = ended or self._faulty(Fault(CallOutcome.CANCELLED, why))
            try:
                await self.desk.keep(ended.record, reserved)
            finally:
                self.desk.budget.settle(expected, ended.record.usage)

    async def _reserve(self) -> tuple[Usage, int | None]:
        """What the call is expected to take, and the log's reservation of it."""
        output = min(EXPECTED_OUTPUT, output_tokens(self.call.spec))
        expected = self._priced(Usage(_tokens(len(self.call.request)), output))
        seconds = attempt_seconds(self.call.spec) + SETTLE_SECONDS
        asked = asyncio.get_running_loop().run_in_executor(
            self.desk.recorder, self.desk.set_aside, expected, seconds
        )
        try:
            return expected, await asyncio.shield(asked)
        except (BudgetStop, StepBudgetStop) as stop:
            await self.desk.keep(self.record(CallOutcome.BUDGET, str(stop)))
            raise
        except asyncio.CancelledError:
            await asyncio.wait([asked])
            if asked.exception() is None:
                stopped = self.record(CallOutcome.CANCELLED, "stopped before it was made")
                await self.desk.keep(stopped, asked.result())
                self.desk.budget.settle(expected, Usage())
            raise

    async def _ask(self) -> _Ended:
        """Ask once and judge what came; only a cancellation and faults of our own get out."""
        token = current_exchange.set(self.exchange)
        try:
            async with asyncio.timeout(attempt_seconds(self.call.spec)):
                response = await self.call.ask()
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary to foreign clients
            return self._faulty(classify(error, self.exchange))
        finally:
            current_exchange.reset(token)
        usage = self._told(response)
        if fault := _unfinished(self.call.spec, response) or _not_asked(self.call.spec, response):
            return self._faulty(fault, usage)
        outcome, reason = _spoken(response)
        if outcome is CallOutcome.ANSWERED:
            reason = "; ".join(filter(None, (self.call.judge(response), self.exchange.note)))
        data = response_bytes(response, self.desk.lines.redact)
        return _Ended(self.record(outcome, reason, data, usage))

    def _faulty(self, fault: Fault, usage: Usage | None = None) -> _Ended:
        head = self.desk.lines.redact(self.exchange.head.decode(errors="replace"))
        body = canonical({"status": self.exchange.status, "body": head}) if head else b""
        usage = self._cut() if usage is None else usage
        return _Ended(self.record(fault.outcome, fault.reason, body, usage), fault)

    def record(
        self, outcome: CallOutcome, reason: str, response: bytes = b"", usage: Usage | None = None
    ) -> CallRecord:
        """What is kept of this attempt."""
        call = self.call
        return CallRecord(
            key=call.key,
            place=call.place,
            role=call.role,
            model=model_label(call.spec),
            prompt_digest=call.prompt_digest,
            attempt=self.number,
            outcome=outcome,
            reason=plain(self.desk.lines.redact(reason))[:500],
            request=call.request,
            response=response,
            usage=usage or Usage(),
            seconds=time.monotonic() - self.started if self.started else 0.0,
        )

    def _told(self, response: ModelResponse) -> Usage:
        """What the endpoint says an answer took, or an estimate where it says nothing."""
        told = response.usage
        if told.input_tokens <= 0:
            return self._estimate()
        return self._priced(Usage(told.input_tokens, told.output_tokens, told.cache_read_tokens))

    def _cut(self) -> Usage:
        """What an attempt without an answer took: nothing where the endpoint turned it away."""
        if self.exchange.sent == 0 or self.exchange.status >= 300:
            return Usage()
        return self._estimate()

    def _estimate(self) -> Usage:
        sent = self.exchange.sent or len(self.call.request)
        # Whatever was sent on after that: the model was told to end there.
        output = min(_tokens(self.exchange.received), output_tokens(self.call.spec))
        return self._priced(Usage(_tokens(sent), output, is_estimated=True))

    def _priced(self, usage: Usage) -> Usage:
        return self.desk.prices.priced(self.call.spec, usage)


def _given_up(call: Call, record: CallRecord) -> Exception:
    if record.is_last:
        # Word for word what is raised when it is recalled: roles put it into what they ask next.
        return CallFailed(record.outcome, record.reason)
    return ModelUnavailable(record.outcome, endpoint_of(call.spec), record.reason)


def _spoken(response: ModelResponse) -> tuple[CallOutcome, str]:
    """How an answer that came whole is named."""
    if response.finish_reason == "content_filter":
        refusal = (response.provider_details or {}).get("refusal") or "no reason is given"
        return CallOutcome.REFUSED, f"the model refuses: {refusal}"
    says = any(
        not isinstance(part, TextPart | ThinkingPart)
        or (isinstance(part, TextPart) and part.content.strip())
        for part in response.parts
    )
    return (CallOutcome.ANSWERED, "") if says else (CallOutcome.EMPTY, "the answer is empty")


_VERSION = re.compile(r"[-@:](\d[\d.\-]*|latest)")


def _unfinished(spec: ModelSpec, response: ModelResponse) -> Fault | None:
    """A fault when a stream ended before the answer did: half an answer is none."""
    if option(spec, "stream", "no") == "no" or response.finish_reason is not None:
        return None
    return Fault(CallOutcome.MALFORMED, "the stream ended before the answer did")


def _not_asked(spec: ModelSpec, response: ModelResponse) -> Fault | None:
    """A fault when another model than the one asked for has answered."""
    wanted = option(spec, "answers_as", spec.name)
    said = response.model_name or wanted
    short, long = sorted((_bare(wanted), _bare(said)), key=len)
    rest = long.removeprefix(short) if long.startswith(short) else long
    if wanted == "*" or not rest or _VERSION.fullmatch(rest):
        return None
    reason = f"another model answers: {said} (if it may, add the option answers_as={said})"
    return Fault(CallOutcome.MALFORMED, reason, is_paid=True)


def _bare(name: str) -> str:
    """A model's name without the folder or the vendor before it."""
    return name.lower().rpartition("/")[2]


def _tokens(size: int) -> int:
    return math.ceil(size / BYTES_PER_TOKEN)
