"""Calls kept outside of a database, and runs repeated from them without a model."""

from __future__ import annotations

from collections.abc import Iterable

from evolution.llm.calls import CallRecord, Usage


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
