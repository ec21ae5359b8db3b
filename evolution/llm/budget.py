"""What may be spent, and the hard stop when it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from evolution.llm.calls import BudgetStop, StepBudgetStop, Usage

STEP_STOP = "the step's budget is used up"
"""How the reason of a StepBudgetStop begins."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent: US dollars, tokens in and out together, seconds by the wall."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing is limited."""
        return self.usd is None and self.tokens is None and self.seconds is None


class Budget:
    """The budget of a run, and of the step at work.

    A call is let through when what is on record, what is in flight and what the call is expected
    to take fit together. So a limit is exceeded at most by what the calls in flight take beyond
    the expectation. `run_seconds` tells how long the run has been at work before and now.
    """

    def __init__(
        self,
        run: Limits,
        step: Limits | None = None,
        *,
        run_seconds: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        started = clock()
        self.run = run
        self.step = step or Limits()
        self._step_seconds: Callable[[], float] = lambda: clock() - started
        self._run_seconds = run_seconds or self._step_seconds
        self._lock = threading.Lock()
        self._in_flight: list[Usage] = []
        self._step_spent = Usage()

    @property
    def step_spent(self) -> Usage:
        """What the step at work took so far, recalled calls included."""
        return self._step_spent

    def reserve(self, spent: Usage, expected: Usage) -> None:
        """Let a call through, and set aside what the step is expected to spend on it.

        `spent` is what the run has on record and in flight, in every process. BudgetStop when the
        run's limits forbid it, StepBudgetStop when only the step's do.
        """
        with self._lock:
            if line := _exceeded(self.run, spent, expected, self._run_seconds()):
                raise BudgetStop(f"the run's budget is used up: {line}")
            mine = sum(self._in_flight, self._step_spent)
            if line := _exceeded(self.step, mine, expected, self._step_seconds()):
                raise StepBudgetStop(f"{STEP_STOP}: {line}")
            self._in_flight.append(expected)

    def settle(self, expected: Usage, took: Usage) -> None:
        """The call is over and on record: what it took takes the place of what was set aside."""
        with self._lock:
            self._in_flight.remove(expected)
            self._step_spent += took

    def count(self, took: Usage) -> None:
        """A call of this step that was recalled: it was paid for before, within this step."""
        with self._lock:
            self._step_spent += took


def _exceeded(limits: Limits, spent: Usage, expected: Usage, seconds: float) -> str:
    """One line on the limit that would be exceeded, empty when none is."""
    if limits.seconds is not None and seconds >= limits.seconds:
        return f"{seconds:.0f} of {limits.seconds:.0f} seconds"
    if limits.usd is not None and spent.usd + expected.usd > limits.usd:
        return (
            f"{spent.usd:.4f} of {limits.usd:.4f} USD, "
            f"and the next call is expected to cost {expected.usd:.4f}"
        )
    if limits.tokens is not None and spent.tokens + expected.tokens > limits.tokens:
        return (
            f"{spent.tokens} of {limits.tokens} tokens, "
            f"and the next call is expected to take {expected.tokens}"
        )
    return ""
