"""Many calls, a fifth of them spoiled in every way: no stage is lost, and none is done twice."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from evolution.agents.answers import Review
from evolution.agents.asking import GaveUp, Question, ask
from evolution.agents.trimming import Bounds
from evolution.llm.calls import CallOutcome, ModelUnavailable, Role
from evolution.llm.endpoints import parse_models
from evolution.llm.gateway import Gateway
from evolution.llm.lines import Lines
from evolution.llm.replay import CallMemory
from evolution.prompts import prompt
from tests.harness.lineages import KEY, endpoint
from tests.harness.server import Fault, FaultPlan, ModelServer
from tests.harness.server.faults import SLUGGISH
from tests.harness.server.models.parts import answer

STAGES = 100
BOUNDS = Bounds()
OPTIONS = "attempts=6 concurrency=8"
OUTCOMES = {
    Fault.RATE_LIMITED: CallOutcome.RATE_LIMITED,
    Fault.SERVER_ERROR: CallOutcome.SERVER_ERROR,
    Fault.BAD_GATEWAY: CallOutcome.SERVER_ERROR,
    Fault.OVERLOADED: CallOutcome.SERVER_ERROR,
    Fault.RESET: CallOutcome.CONNECTION,
    Fault.CUT: CallOutcome.CONNECTION,
    Fault.SLOW: CallOutcome.TIMEOUT,
    Fault.HANG: CallOutcome.TIMEOUT,
    Fault.TRUNCATED: CallOutcome.MALFORMED,
    Fault.HTML: CallOutcome.MALFORMED,
    Fault.HUGE: CallOutcome.TOO_LARGE,
    Fault.WRONG_MODEL: CallOutcome.MALFORMED,
    Fault.REFUSAL: CallOutcome.REFUSED,
    Fault.EMPTY: CallOutcome.EMPTY,
    Fault.CONTEXT: CallOutcome.CONTEXT_OVERFLOW,
}
"""Under which name a fault is on record. The others are answers, and the agents' business."""


def review(gateway: Gateway, number: int) -> Review | GaveUp:
    """One stage: a question with a typed answer, asked again while the endpoint is unavailable."""
    question = Question(
        role=Role.PLAN_REVIEWER,
        place=f"stage/{number}",
        prompt=prompt("plan_reviewer", "house"),
        text=f"## The plan\n\nnumber {number}",
        answer=Review,
    )
    for _ in range(10):
        try:
            return ask(gateway, question, BOUNDS)
        except ModelUnavailable:
            time.sleep(0.2)
    raise AssertionError(f"stage {number} was lost")


def all_stages(server: ModelServer, log: CallMemory) -> list[Review | GaveUp]:
    """All stages, some at once."""
    lines = Lines({"HARNESS_KEY": KEY})
    table = parse_models(endpoint(server.url, "reviewer", f"{OPTIONS} timeout=2.5"))
    with Gateway(table, log, lines) as gateway, ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda number: review(gateway, number), range(STAGES)))
    lines.close()
    return given


def test_no_stage_is_lost_and_none_is_done_twice() -> None:
    plan = FaultPlan(share=0.2)
    script = {"reviewer": lambda asked: answer(asked, accepted=True)}
    with ModelServer(script, faults=plan) as server:
        log = CallMemory()
        given = all_stages(server, log)
        accepted = [one for one in given if isinstance(one, Review) and one.accepted]
        assert len(accepted) >= 0.9 * STAGES, "most models come round when told what is wrong"
        count = len(server.served)
        spoiled = [call for call in server.served if call.fault is not None]
        assert 0.1 < len(spoiled) / count < 0.3
        assert all_stages(server, log) == given, "a finished stage is remembered as it was"
        assert len(server.served) == count, "and nothing of it is asked again"
    final = [call.key for call in log.calls if call.outcome.is_final]
    assert len(final) == len(set(final))
    known = sum(call.usage.tokens for call in log.calls if not call.usage.is_estimated)
    assert known == server.told(), "what the endpoint told is counted to the token"
    cut = {Fault.CUT, Fault.TRUNCATED, Fault.HUGE, Fault.SLOW, Fault.HANG, Fault.NAN_USAGE}
    cut |= {Fault.RESET, Fault.HTML}
    estimated = [call for call in log.calls if call.usage.is_estimated]
    assert len(estimated) == sum(call.fault in cut for call in server.served)
    assert all(call.usage.tokens > 0 for call in estimated)
    assert KEY not in "".join(repr(call) for call in log.calls)
    assert {call.authorization for call in server.served} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("fault", list(OUTCOMES))
@pytest.mark.parametrize("stream", ["no", "yes"])
def test_every_fault_has_a_name_on_record(fault: Fault, stream: str) -> None:
    script = {"reviewer": lambda asked: answer(asked, accepted=True)}
    with ModelServer(script, faults=FaultPlan(at={1: fault})) as server:
        lines, log = Lines({"HARNESS_KEY": KEY}), CallMemory()
        limits = f"timeout={1 if fault in SLUGGISH else 30} stream={stream}"
        table = parse_models(endpoint(server.url, "reviewer", f"{OPTIONS} {limits}"))
        with Gateway(table, log, lines) as gateway:
            given = ask(gateway, _question(), BOUNDS)
        lines.close()
    if fault is Fault.REFUSAL:
        assert isinstance(given, GaveUp), "who refuses is not pressed"
    else:
        assert given == Review(accepted=True)
    assert log.calls[0].outcome is OUTCOMES[fault], log.calls[0].reason
    assert "\n" not in log.calls[0].reason
    assert log.calls[0].reason


def _question() -> Question[Review]:
    return Question(
        role=Role.PLAN_REVIEWER,
        place="stage",
        prompt=prompt("plan_reviewer", "house"),
        text="## The plan",
        answer=Review,
    )
