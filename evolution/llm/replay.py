"""Calls kept outside of a database, and runs repeated from them without a model."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import fields

from evolution.llm.calls import CallOutcome, CallRecord, Role, Usage


class ReplayMiss(Exception):
    """A replay came to a call that was never answered: it is not the run that was recorded."""

    def __init__(self, place: str) -> None:
        super().__init__(f"the recorded run has no answer at {place}")
        self.place = place


class CallMemory:
    """A log of calls in memory, filled from records."""

    def __init__(self, calls: Iterable[CallRecord] = ()) -> None:
        self.calls: list[CallRecord] = []
        self._final: dict[str, CallRecord] = {}
        self._spent = Usage()
        for call in calls:
            self.record(call)

    def recall(self, key: str) -> CallRecord | None:
        """The call with that key whose outcome is final, or None."""
        return self._final.get(key)

    def record(self, call: CallRecord) -> None:
        """Keep a call."""
        self.calls.append(call)
        self._spent += call.usage
        if call.outcome.is_final:
            self._final.setdefault(call.key, call)

    def spent(self) -> Usage:
        """What all calls took."""
        return self._spent


def call_line(call: CallRecord) -> str:
    """A call as one line of JSON; nothing in it is lost."""
    plain: dict[str, object] = {
        field.name: getattr(call, field.name) for field in fields(CallRecord)
    }
    plain["usage"] = {field.name: getattr(call.usage, field.name) for field in fields(Usage)}
    for name in ("request", "response"):
        plain[name] = base64.b64encode(getattr(call, name)).decode()
    return json.dumps(plain, sort_keys=True)


def parse_call(line: str) -> CallRecord:
    """The call that `call_line` wrote; ValueError when the line is none."""
    try:
        plain = json.loads(line)
        return CallRecord(
            **{
                **plain,
                "role": Role(plain["role"]),
                "outcome": CallOutcome(plain["outcome"]),
                "usage": Usage(**plain["usage"]),
                "request": base64.b64decode(plain["request"], validate=True),
                "response": base64.b64decode(plain["response"], validate=True),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this line is no recorded call: {error}") from None
