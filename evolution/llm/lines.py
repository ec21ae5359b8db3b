"""The ways to the endpoints, one set per process: all HTTP happens in one event loop of its own.

Concurrency, rate and the circuit breaker hold per endpoint and process. On n worker processes an
endpoint sees up to n times the concurrency and rate that are configured: divide them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.models import Model

from evolution.llm.breaker import Breaker
from evolution.llm.calls import ModelSpec
from evolution.llm.endpoints import PROVIDER_KEYS, endpoint_of, key_of, option
from evolution.llm.providers import build_model

CONCURRENCY = 4
"""Calls at once to one endpoint, unless the operator says otherwise."""


PATIENCE = 20.0
"""Seconds for which a call waits for an endpoint that is left alone, before it is given up."""

SHORTEST_KEY = 8
"""Characters from which on a key is taken for a secret."""

TALKATIVE = ("httpx2", "httpcore2", "openai", "anthropic", "google_genai")
"""Loggers that write down whole requests and headers below the level of warnings."""


class CircuitOpen(Exception):
    """The endpoint failed too often in a row: it is left alone for some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"left alone for {seconds:.0f} more seconds after repeated faults")


@dataclass(slots=True)
class Line:
    """The way to one endpoint. Used inside the event loop of the lines only."""

    endpoint: str
    concurrency: int
    per_minute: int
    breaker: Breaker = field(default_factory=Breaker)
    next_at: float = 0.0
    """The time before which no request may start: the rate, or what the endpoint asked for."""
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a turn; CircuitOpen when the endpoint is left alone for long."""
        async with self._slots:
            await self._turn()
            if self.per_minute:
                self.next_at = max(self.next_at, time.monotonic()) + 60 / self.per_minute
            try:
                yield
            finally:
                # Who came to an end has told the breaker so; who was cancelled has not.
                self.breaker.abandoned()

    async def _turn(self) -> None:
        """Wait until the next request may start; CircuitOpen when that takes too long."""
        patient_until = time.monotonic() + PATIENCE
        while True:
            while (pause := self.next_at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            refused = self.breaker.refusal(time.monotonic())
            if refused is None:
                return
            if time.monotonic() + refused > patient_until:
                raise CircuitOpen(refused)
            await asyncio.sleep(refused)

    def hold(self, seconds: float) -> None:
        """The endpoint asked everyone to wait."""
        self.next_at = max(self.next_at, time.monotonic() + seconds)


class Lines:
    """All endpoints of a process. `environment` is where the keys are; it is read per model."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._lines: dict[str, Line] = {}
        self._models: dict[ModelSpec, Model] = {}
        self._keys: set[str] = set()
        for name in (name for names in PROVIDER_KEYS.values() for name in names):
            self._remember(environment.get(name, "").strip())
        for name in TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)

    def __repr__(self) -> str:
        return f"Lines({', '.join(sorted(self._lines))})"

    def submit[T](self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the event loop of the lines."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def model(self, spec: ModelSpec, *, needs_key: bool = True) -> Model:
        """The model behind a spec, with its key. ModelConfigError when the key is missing.

        Without `needs_key` none is looked for: such a model only describes itself.
        """
        with self._lock:
            self._renew_after_fork()
            if not needs_key:
                return build_model(spec, "")
            if spec not in self._models:
                key = key_of(spec, self._environment)
                self._remember(key)
                self._models[spec] = build_model(spec, key)
            return self._models[spec]

    def line(self, spec: ModelSpec) -> Line:
        """The way to a model's endpoint; the first model of an endpoint sets its bounds."""
        endpoint = endpoint_of(spec)
        with self._lock:
            if endpoint not in self._lines:
                self._lines[endpoint] = Line(
                    endpoint,
                    option(spec, "concurrency", CONCURRENCY),
                    option(spec, "per_minute", 0),
                )
            return self._lines[endpoint]

    def redact(self, text: str) -> str:
        """The text without any key of a provider, or that was ever sent."""
        for key in tuple(self._keys):
            text = text.replace(key, "[key]")
        return text

    def _remember(self, key: str) -> None:
        # What is shorter is a placeholder for endpoints without keys, and stands in any text.
        if len(key) >= SHORTEST_KEY:
            self._keys.update((key, json.dumps(key)[1:-1]))  # plain, and as JSON writes it

    def close(self) -> None:
        """End the event loop; what is under way is cancelled."""
        with self._lock:
            loop, self._loop = self._loop, None
            self._models.clear()
            self._lines.clear()
        if loop is not None and self._pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            self._renew_after_fork()
            if self._loop is None:
                self._pid = os.getpid()
                loop = self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run_loop, args=(loop,), name="model-lines", daemon=True
                ).start()
            return self._loop

    def _renew_after_fork(self) -> None:
        """Threads and connections of a parent process are not ours."""
        if self._loop is not None and self._pid != os.getpid():
            self._loop = None
            self._models.clear()
            self._lines.clear()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
