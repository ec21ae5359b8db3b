"""The one way every request to a model goes: recalled, budgeted, bounded, retried, recorded.

Loaded only when a model is really used: what it imports takes seconds to load.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from pydantic_ai import Agent
from pydantic_ai.agent import AgentRunResult
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from evolution.llm.budget import Budget, Limits
from evolution.llm.calling import place_call
from evolution.llm.calls import CallLog, ModelSpec, Role
from evolution.llm.canonical import answer_in, call_key, request_bytes
from evolution.llm.desk import Call, Desk
from evolution.llm.endpoints import COMPATIBLE, ModelTable, option
from evolution.llm.form import out_of_form
from evolution.llm.lines import Lines
from evolution.llm.pricing import Prices, refuse_unpriced
from evolution.llm.replay import ReplayMiss

_NOBODY = ModelSpec(COMPATIBLE, "replay", "http://replay.invalid/v1")
"""Stands for every model in a replay, where none is asked."""


@dataclass(slots=True)
class _Place:
    """Where in the run the calls stand; turns are counted from 1."""

    name: str
    prompt_digest: str
    turn: int = 0


@dataclass(frozen=True, slots=True)
class _Request:
    """What an agent asks its model."""

    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters


class Gateway:
    """A step's way to its models. Close it (or use it as a context) when the step is over.

    `log` is called in one thread that belongs to the gateway. With `is_replay` nothing is called:
    an answer that the log does not hold is a ReplayMiss. ModelConfigError when USD are limited and
    a price is unknown.
    """

    def __init__(
        self,
        table: ModelTable,
        log: CallLog,
        lines: Lines,
        *,
        budget: Budget | None = None,
        prices: Prices | None = None,
        is_replay: bool = False,
    ) -> None:
        self.budget = budget or Budget(Limits())
        self.prices = prices or Prices()
        has_usd = self.budget.run.usd is not None or self.budget.step.usd is not None
        if has_usd and not is_replay:
            refuse_unpriced(self.prices, table.specs)
        self._table = table
        self._log = log
        self._lines = lines
        self._is_replay = is_replay
        self._place: ContextVar[_Place | None] = ContextVar("place", default=None)
        self._recorder = ThreadPoolExecutor(1, thread_name_prefix="call-log")
        self._desk = Desk(lines, self.budget, self.prices, log, self._recorder)
        self._under_way: set[Future[ModelResponse]] = set()
        self._open = 0
        self._ended = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what the gateway holds; calls still under way are cancelled and recorded."""
        for call in tuple(self._under_way):
            call.cancel()
        with self._ended:
            self._ended.wait_for(lambda: self._open == 0)
        self._recorder.shutdown(wait=True)

    @contextmanager
    def at(self, place: str, *, prompt_digest: str = "") -> Iterator[None]:
        """The calls inside stand at `place`, numbered by turn: `place/1`, `place/2`, ...

        One place is one conversation: the same request at the same place and turn is the same
        call, and is made once per run.
        """
        token = self._place.set(_Place(place, prompt_digest))
        try:
            yield
        finally:
            self._place.reset(token)

    def model_for(self, role: Role) -> Model:
        """The model that plays a role, every request of which goes through here.

        ModelConfigError when no model plays it or its key is missing. A replay needs neither.
        """
        if self._is_replay:
            wrapped = self._lines.model(_NOBODY, needs_key=False)
        else:
            wrapped = self._lines.model(self._table.spec(role))
        return GatewayModel(wrapped, self, role)

    def run[T](self, agent: Agent[Any, T], prompt: str, **options: Any) -> AgentRunResult[T]:
        """Run an agent to its end from a thread without an event loop; `options` go to the agent.

        Each run has a loop of its own, which leaves nothing behind.
        """
        return asyncio.run(agent.run(prompt, **options))

    async def answer(self, role: Role, wrapped: Model, asked: _Request) -> ModelResponse:
        """The answer to one request: recalled, or called for and recorded."""
        here = self._place.get()
        if here is None:
            raise RuntimeError("a model is called outside of every place")
        here.turn += 1
        place = f"{here.name}/{here.turn}"
        plain = request_bytes(asked.messages, asked.parameters).decode()
        request = self._lines.redact(plain).encode()
        key = call_key(place, request)
        loop = asyncio.get_running_loop()
        known = await loop.run_in_executor(self._recorder, self._log.recall, key)
        if known is not None:
            self.budget.count(known.usage)
            return answer_in(known)
        if self._is_replay:
            raise ReplayMiss(place)
        spec = self._table.spec(role)
        call = Call(
            key=key,
            place=place,
            role=role,
            spec=spec,
            prompt_digest=here.prompt_digest,
            request=request,
            ask=partial(_ask, wrapped, asked, is_streamed=option(spec, "stream", "no") == "yes"),
            judge=partial(out_of_form, asked.parameters),
        )
        future = self._lines.submit(self._placed(call))
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return await asyncio.wrap_future(future)

    async def _placed(self, call: Call) -> ModelResponse:
        with self._ended:
            self._open += 1
        try:
            return await place_call(self._desk, call)
        finally:
            with self._ended:
                self._open -= 1
                self._ended.notify_all()


class GatewayModel(WrapperModel):
    """A model as the agents see it."""

    def __init__(self, wrapped: Model, gateway: Gateway, role: Role) -> None:
        super().__init__(wrapped)
        self._gateway = gateway
        self._role = role

    async def __aenter__(self) -> Self:
        # The wrapped model's client belongs to the lines, which outlive every agent's run.
        return self

    async def __aexit__(self, *_: object) -> bool | None:
        return None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask, through the gateway."""
        asked = _Request(messages, model_settings, model_request_parameters)
        return await self._gateway.answer(self._role, self.wrapped, asked)


async def _ask(wrapped: Model, asked: _Request, *, is_streamed: bool) -> ModelResponse:
    """Ask once, and wait for the whole answer."""
    if not is_streamed:
        return await wrapped.request(asked.messages, asked.settings, asked.parameters)
    async with wrapped.request_stream(asked.messages, asked.settings, asked.parameters) as stream:
        async for _ in stream:
            pass
        return stream.get()
