"""What can go wrong at a model's endpoint, drawn from the question: the same run, the same faults.

Some pass when the same question is asked again; those of the model itself stay, since they are its
answer to that question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.harness.server.wire import Ask, Reply, ToolCall


class Fault(StrEnum):
    """Every way in which a call can be spoiled here."""

    # On the way: another attempt may succeed.
    RATE_LIMITED = "429 with Retry-After"
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502, a page of HTML"
    OVERLOADED = "503"
    RESET = "the connection is reset"
    CUT = "the connection ends in the middle of the answer"
    SLOW = "one byte a second"
    HANG = "no answer at all"
    TRUNCATED = "JSON that ends too early"
    HTML = "a page of HTML with status 200"
    HUGE = "an answer of 10 MB"
    NAN_USAGE = "NaN as usage"
    WRONG_MODEL = "another model's name"
    # From the model: the answer to this question.
    REFUSAL = "a refusal"
    EMPTY = "an empty answer"
    BAD_ARGUMENTS = "arguments that are no JSON"
    WRONG_SCHEMA = "an object of another shape"
    NOWHERE = "a call of a tool that does not exist"
    WRONG_LANGUAGE = "an answer in another language, as prose"
    CONTEXT = "400: the context is too long"

    @property
    def is_passing(self) -> bool:
        """Whether the next attempt at the same question draws again."""
        return self not in OF_THE_MODEL


OF_THE_MODEL = frozenset(
    {
        Fault.REFUSAL,
        Fault.EMPTY,
        Fault.BAD_ARGUMENTS,
        Fault.WRONG_SCHEMA,
        Fault.NOWHERE,
        Fault.WRONG_LANGUAGE,
        Fault.CONTEXT,
    }
)
SLUGGISH = frozenset({Fault.SLOW, Fault.HANG})
"""Faults that cost the caller its whole time-out."""
BRISK = tuple(kind for kind in Fault if kind is not Fault.WRONG_MODEL and kind not in SLUGGISH)
"""What whole runs are disturbed with: no time-outs, and no answers of another model."""


@dataclass(frozen=True)
class FaultPlan:
    """How often something goes wrong, and what.

    `share` of the calls are spoiled, by a fault drawn from `kinds`. `at` fixes the fault of single
    calls by their number (from 1), before anything is drawn. `retry_after` is what 429 says.
    """

    share: float = 0.0
    kinds: tuple[Fault, ...] = tuple(Fault)
    at: Mapping[int, Fault] = field(default_factory=dict)
    retry_after: str = "0.05"
    salt: str = ""

    def draw(self, ask: Ask, attempt: int, number: int) -> Fault | None:
        """The fault of this attempt, if any."""
        if number in self.at:
            return self.at[number]
        lasting = tuple(kind for kind in self.kinds if not kind.is_passing)
        passing = tuple(kind for kind in self.kinds if kind.is_passing)
        if not self.kinds or self.share <= 0:
            return None
        of_model = self.share * len(lasting) / len(self.kinds)
        found = _drawn(f"{self.salt}{ask.digest}", lasting, of_model)
        if found is None:
            left = (self.share - of_model) / (1 - of_model)
            found = _drawn(f"{self.salt}{ask.digest}#{attempt}", passing, left)
        return found


def _drawn(text: str, kinds: tuple[Fault, ...], share: float) -> Fault | None:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:12])
    if not kinds or (number % 1_000_003) / 1_000_003 >= share:
        return None
    return kinds[number // 1_000_003 % len(kinds)]


def spoiled(fault: Fault, ask: Ask, reply: Reply) -> Reply:
    """The model's answer under a fault of its own."""
    first = reply.calls[0] if reply.calls else None
    match fault:
        case Fault.REFUSAL:
            return Reply(refusal="I can't help with that.")
        case Fault.EMPTY:
            return Reply()
        case Fault.NOWHERE:
            return Reply(calls=(ToolCall.of("make_it_so", wish="harder"),))
        case Fault.WRONG_LANGUAGE:
            return Reply(text="抱歉,我只能用中文回答:这个环境已经足够难了。")
        case Fault.BAD_ARGUMENTS if first is not None:
            return Reply(calls=(ToolCall(first.name, first.arguments[:-1] + ",,"),))
        case Fault.WRONG_SCHEMA if first is not None:
            return Reply(calls=(ToolCall(first.name, json.dumps({"answer": [42, None]})),))
        case Fault.BAD_ARGUMENTS:
            return Reply(text=(reply.text or "{}")[:-1] + ",,")
        case Fault.WRONG_SCHEMA:
            return Reply(text=json.dumps({"answer": [42, None]}))
    return reply
