"""The memory of a run's calls to models, kept in the database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from django.db import connection
from django.db.models import Q

from evolution.llm.calls import BudgetStop, CallRecord, StepBudgetStop, Usage
from webapp.models import Environment, EvolutionRun
from webapp.services import calls, leases
from webapp.services.calls import Place


class DatabaseCallLog:
    """Implements `evolution.llm.calls.CallLog`. A context manager: it may hold a connection.

    With `replay_of`, what is not among the run's own calls is looked for among that run's. Any
    thread may ask, also one with a running event loop: a thread of the log's own asks for them,
    so that none of them leaves a connection behind.
    """

    def __init__(self, place: Place, *, replay_of: EvolutionRun | None = None) -> None:
        self._place = place
        self._replay_of = replay_of
        self._loose: list[int] = []
        self._owner = threading.get_ident()
        self._thread: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Whoever was at this step before works on it no more, and has no call in flight."""
        calls.forget_reservations(self._place)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.submit(_close_connection).result()
            self._thread.shutdown()
            self._thread = None

    def recall(self, key: str) -> CallRecord | None:
        """The first record with that key that ended its call, or None. Raises CorruptStore.

        StepBudgetStop in a replay, where the budget of the step that is repeated was used up.
        """
        return self._ask(lambda: self._recall(key))

    def reserve(self, expected: Usage, seconds: float, fits: Callable[[Usage], None]) -> int | None:
        """Set aside what a call is expected to take; see `CallLog.reserve`.

        BudgetStop also once the run was cancelled: nothing more is spent on it.
        """
        return self._ask(lambda: self._reserve(expected, seconds, fits))

    def record(self, call: CallRecord, reserved: int | None = None) -> None:
        """Keep a call for good, answered or not, at once."""
        self._loose.append(self._ask(lambda: calls.store_call(self._place, call, reserved)))

    def give_to(self, environment: Environment) -> None:
        """What was said since the last candidate led to this one."""
        ids, self._loose = self._loose, []
        self._ask(lambda: calls.give_to_environment(ids, environment))

    def _recall(self, key: str) -> CallRecord | None:
        found = calls.find_call(self._place.scope, key)
        if found is not None:
            self._loose.append(found[0])
            return found[1]
        if self._replay_of is None:
            return None
        replayed = calls.find_call(Q(run=self._replay_of), key)
        if replayed is not None:
            return replayed[1]
        if line := calls.find_step_stop(self._replay_of, key):
            raise StepBudgetStop(line)
        return None

    def _reserve(
        self, expected: Usage, seconds: float, fits: Callable[[Usage], None]
    ) -> int | None:
        run = self._place.run
        if run is not None and leases.is_run_cancelled(run.pk):
            raise BudgetStop("the run was cancelled")
        return calls.reserve_call(self._place, expected, seconds, fits)

    def _ask[T](self, question: Callable[[], T]) -> T:
        if threading.get_ident() == self._owner and not _has_loop():
            return question()
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="calls")
            answer = self._thread.submit(question)
        return answer.result()


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _close_connection() -> None:
    connection.close()
