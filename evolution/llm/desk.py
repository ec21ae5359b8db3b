"""A call on its way, and what it needs beside itself: the log, the budget, the lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from pydantic_ai.messages import ModelResponse

from evolution.llm.budget import Budget
from evolution.llm.calls import CallLog, CallRecord, ModelSpec, Role, Usage
from evolution.llm.lines import Lines
from evolution.llm.pricing import Prices


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way: what it is, how to ask once, what is wrong with an answer's form."""

    key: str
    place: str
    role: Role
    spec: ModelSpec
    prompt_digest: str
    request: bytes
    ask: Callable[[], Awaitable[ModelResponse]]
    judge: Callable[[ModelResponse], str]


@dataclass(frozen=True, slots=True)
class Desk:
    """What a call needs beside itself. `recorder` is the only thread that touches the log."""

    lines: Lines
    budget: Budget
    prices: Prices
    log: CallLog
    recorder: Executor

    async def keep(self, record: CallRecord, reserved: int | None = None) -> None:
        """Record a call, whatever happens to the caller meanwhile."""
        loop = asyncio.get_running_loop()
        await asyncio.shield(loop.run_in_executor(self.recorder, self.log.record, record, reserved))

    async def settled(self, record: CallRecord) -> CallRecord:
        """What counts as the answer: the one that another worker had first, or this one."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.recorder, self.log.recall, record.key) or record

    def set_aside(self, expected: Usage, seconds: float) -> int | None:
        """Reserve a call in the log and in the budget, or in neither: BudgetStop, StepBudgetStop.

        To be called in the recorder's thread.
        """
        is_let_through = False

        def fits(spent: Usage) -> None:
            nonlocal is_let_through
            self.budget.reserve(spent, expected)
            is_let_through = True

        try:
            return self.log.reserve(expected, seconds, fits)
        except BaseException:
            if is_let_through:
                self.budget.settle(expected, Usage())
            raise
