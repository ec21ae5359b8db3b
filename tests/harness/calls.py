"""Many small stages, each one question to a model, at a server that spoils some of its answers."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from evolution.agents.answers import Review
from evolution.agents.asking import GaveUp, Question, ask
from evolution.agents.trimming import Bounds
from evolution.llm.calls import ModelUnavailable, Role
from evolution.llm.gateway import Gateway
from evolution.llm.replay import CallMemory
from evolution.prompts import prompt
from tests.harness.lineages import KEY, endpoint, gateway_to
from tests.harness.server import Fault, FaultPlan, ModelServer
from tests.harness.server.models.parts import answer

BOUNDS = Bounds()
OPTIONS = "attempts=6 concurrency=8 timeout=2.5"
CUT = frozenset(
    {
        Fault.CUT,
        Fault.TRUNCATED,
        Fault.HUGE,
        Fault.SLOW,
        Fault.HANG,
        Fault.NAN_USAGE,
        Fault.RESET,
        Fault.HTML,
    }
)
"""Faults after which nobody knows what the call took."""


def question(place: str, text: str = "## The plan") -> Question[Review]:
    """One with a typed answer."""
    return Question(
        role=Role.PLAN_REVIEWER,
        place=place,
        prompt=prompt("plan_reviewer", "house"),
        text=text,
        answer=Review,
    )


@dataclass(frozen=True)
class Calls:
    """`stages` questions, `share` of whose calls are spoiled in every way there is."""

    stages: int
    share: float = 0.2

    def made(self) -> str:
        """Ask them all, twice; what was seen, in a line. Raises AssertionError."""
        script = {"reviewer": lambda asked: answer(asked, accepted=True)}
        begun = time.monotonic()
        with ModelServer(script, faults=FaultPlan(share=self.share)) as server:
            log = CallMemory()
            given = self._asked(server, log)
            accepted = sum(isinstance(one, Review) and one.accepted for one in given)
            assert accepted >= 0.9 * self.stages, "most models come round when told what is wrong"
            count = len(server.served)
            spoiled = Counter(call.fault for call in server.served if call.fault is not None)
            assert 0.5 * self.share < spoiled.total() / count < 1.5 * self.share
            assert self._asked(server, log) == given, "a finished stage is remembered as it was"
            assert len(server.served) == count, "and nothing of it is asked again"
        final = [call.key for call in log.calls if call.outcome.is_final]
        assert len(final) == len(set(final)), "no answered call is made twice"
        told = [call for call in log.calls if not call.usage.is_estimated]
        known = sum(call.usage.tokens for call in told)
        assert known == server.told(), "what the endpoint told is counted to the token"
        guessed = [call for call in log.calls if call.usage.is_estimated]
        assert len(guessed) == sum(spoiled[fault] for fault in CUT), "the rest is estimated"
        assert all(call.usage.tokens > 0 for call in guessed)
        assert KEY not in "".join(repr(call) for call in log.calls)
        assert {call.authorization for call in server.served} == {f"Bearer {KEY}"}
        return (
            f"{self.stages} stages, {accepted} with an answer that can be used; {count} calls, "
            f"{spoiled.total()} spoiled in {len(spoiled)} of {len(Fault)} ways; "
            f"{known} tokens known, {len(guessed)} calls estimated; "
            f"{time.monotonic() - begun:.0f} s"
        )

    def _asked(self, server: ModelServer, log: CallMemory) -> list[Review | GaveUp]:
        """All stages, some at once."""
        models = endpoint(server.url, "reviewer", OPTIONS)
        with gateway_to(models, log) as gateway, ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda number: _stage(gateway, number), range(self.stages)))


def _stage(gateway: Gateway, number: int) -> Review | GaveUp:
    """One question, asked again while the endpoint is unavailable."""
    for _ in range(10):
        try:
            return ask(gateway, question(f"stage/{number}", f"number {number}"), BOUNDS)
        except ModelUnavailable:
            time.sleep(0.2)
    raise AssertionError(f"stage {number} was lost")
