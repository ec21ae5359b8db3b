"""Calls kept outside of a database, and runs repeated from them without a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

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
        self._last: dict[str, CallRecord] = {}
        self._spent = Usage()
        self._in_flight: dict[int, Usage] = {}
        self._reservations = 0
        self._lock = threading.Lock()
        for call in calls:
            self.record(call)

    def recall(self, key: str) -> CallRecord | None:
        """The first record with that key that ended its call, or None."""
        return self._last.get(key)

    def reserve(self, expected: Usage, seconds: float, fits: Callable[[Usage], None]) -> int:
        """Set aside what a call is expected to take; see `CallLog.reserve`."""
        with self._lock:
            fits(sum(self._in_flight.values(), self._spent))
            self._reservations += 1
            self._in_flight[self._reservations] = expected
            return self._reservations

    def record(self, call: CallRecord, reserved: int | None = None) -> None:
        """Keep a call."""
        self.calls.append(call)
        with self._lock:
            self._spent += call.usage
            if reserved is not None:
                self._in_flight.pop(reserved, None)
        if call.is_last:
            self._last.setdefault(call.key, call)

    def spent(self) -> Usage:
        """What all calls took."""
        return self._spent
