"""When an endpoint is left alone: a pure state machine, time passed in."""

from __future__ import annotations

from dataclasses import dataclass

THRESHOLD = 10
"""Faults in a row, over all callers, after which an endpoint is left alone."""

FIRST_PAUSE = 5.0
"""Seconds of the first pause; each further one in a row is twice as long."""

LONGEST_PAUSE = 600.0

PROBING = 1.0
"""Seconds after which to ask again while the call that decides is under way."""


@dataclass(slots=True)
class Breaker:
    """Closed: calls pass. Open: none does. After the pause one call passes and decides."""

    faults: int = 0
    pauses: int = 0
    open_until: float = 0.0
    is_probing: bool = False

    def refusal(self, now: float) -> float | None:
        """Seconds for which no call may pass; None when this one may."""
        if self.pauses == 0:
            return None
        if now < self.open_until:
            return self.open_until - now
        if self.is_probing:
            return PROBING
        self.is_probing = True
        return None

    def succeeded(self) -> None:
        """The endpoint has answered."""
        self.faults = self.pauses = 0
        self.is_probing = False

    def failed(self, now: float, *, at_once: bool = False) -> None:
        """The endpoint has not answered. `at_once`: no use in counting, only a person can help."""
        self.faults += 1
        if self.is_probing or at_once or (self.pauses == 0 and self.faults >= THRESHOLD):
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.pauses)
            self.open_until = now + pause
            self.pauses += 1
            self.is_probing = False

    def abandoned(self) -> None:
        """The call that was to decide came to no end: the next one decides."""
        self.is_probing = False
