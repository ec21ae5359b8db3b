"""What one call to a language model is, and what the harness needs to keep of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Role(StrEnum):
    """Who calls. Any model may play any role."""

    PROPOSER = "proposer"
    PLAN_REVIEWER = "plan_reviewer"
    MODIFIER = "modifier"
    EXPLOITER = "exploiter"
    JUDGE = "judge"
    TRIAGE = "triage"
    COLD_START = "cold_start"
    SOLVER = "solver"


SANDBOX = "sandbox"
"""Stands where a model's name would, in the record of what a tool gave: no model was asked."""


class CallOutcome(StrEnum):
    """How one attempt at a call ended. The set is closed: everything else is a fault of ours."""

    ANSWERED = "answered"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CONNECTION = "connection"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    EMPTY = "empty"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    AUTH = "auth"
    BUDGET = "budget"
    CIRCUIT_OPEN = "circuit_open"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the model has spoken: recalled on a resume, never asked again at that place.

        An overflow is final, too: the same request overflows again.
        """
        return self in _FINAL


_FINAL = frozenset(
    {
        CallOutcome.ANSWERED,
        CallOutcome.REFUSED,
        CallOutcome.EMPTY,
        CallOutcome.CONTEXT_OVERFLOW,
    }
)


PAID_ATTEMPTS = 2
"""How often a call is made whose answer came and is of no use: each one is paid for."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call took. `is_estimated`: the endpoint did not say, these are our own figures.

    `cached_tokens` are those of the input tokens that the endpoint had read before.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0
    is_estimated: bool = False

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Both together; estimated as soon as one of them is."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.usd + other.usd,
            self.is_estimated or other.is_estimated,
        )


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model plays a role: a provider's, or one behind an OpenAI-compatible `base_url`.

    `settings` are what the provider is told beside the messages (temperature, max_tokens).
    The key is never in here.
    """

    provider: str
    name: str
    base_url: str = ""
    settings: tuple[tuple[str, float | int | str], ...] = ()


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One attempt at one call, kept for good.

    `request` and `response` are canonical JSON without secrets; `key` is the SHA-256 of the place
    and the canonical request; `attempt` counts from 1; `reason` is one line: of an answer, what is
    wrong with its form.
    """

    key: str
    place: str
    role: Role
    model: str
    prompt_digest: str
    attempt: int
    outcome: CallOutcome
    reason: str
    request: bytes
    response: bytes
    usage: Usage
    seconds: float

    @property
    def is_last(self) -> bool:
        """Whether the call ended with this attempt for good: recalled, and never made again.

        An answer that was too large the last time it was paid for is such an end, too.
        """
        is_endless = self.outcome is CallOutcome.TOO_LARGE and self.attempt >= PAID_ATTEMPTS
        return self.outcome.is_final or is_endless


class CallLog(Protocol):
    """The memory of a run's calls: an answered call is never made twice."""

    def recall(self, key: str) -> CallRecord | None:
        """The first record with that key that ended its call (`CallRecord.is_last`), or None."""
        ...

    def reserve(self, expected: Usage, seconds: float, fits: Callable[[Usage], None]) -> int | None:
        """Set aside what a call is expected to take, for `seconds` at most.

        `fits` is told what the calls of the run took and what is set aside for others, in every
        process, and raises where there is no room: nothing is set aside then. No other reservation
        comes in between.
        """
        ...

    def record(self, call: CallRecord, reserved: int | None = None) -> None:
        """Keep a call for good, answered or not; at once, whatever the caller does next.

        What it took takes the place of what was `reserved` for it.
        """
        ...


class BudgetStop(Exception):
    """The run's hard stop. Nothing was lost: the step is put back, the run pauses with this."""


class ModelUnavailable(Exception):
    """The endpoint cannot be used now. Machinery: never a refusal, never a reward of 0.

    `outcome` says how the last attempt ended, `endpoint` which one it was.
    """

    def __init__(self, outcome: CallOutcome, endpoint: str, reason: str = "") -> None:
        super().__init__(f"{endpoint}: {reason or outcome.value}")
        self.outcome = outcome
        self.endpoint = endpoint


class CallFailed(Exception):
    """This request has no answer from this model, and would have none the next time.

    `outcome` is CONTEXT_OVERFLOW (ask with less) or TOO_LARGE (it never stops talking). No
    machinery is broken: the role asks otherwise or gives up with this line.
    """

    def __init__(self, outcome: CallOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


class StepBudgetStop(Exception):
    """The step's own budget is used up: the step ends without a child, the run goes on."""
