"""Many calls, a fifth of them spoiled in every way: no stage is lost, and none is done twice."""

from __future__ import annotations

import pytest

from evolution.agents.answers import Review
from evolution.agents.asking import GaveUp, ask
from evolution.llm.calls import CallOutcome
from evolution.llm.replay import CallMemory
from tests.harness.calls import BOUNDS, Calls, question
from tests.harness.lineages import endpoint, gateway_to
from tests.harness.server import Fault, FaultPlan, ModelServer
from tests.harness.server.faults import SLUGGISH
from tests.harness.server.models.parts import answer

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


def test_no_stage_is_lost_and_none_is_done_twice() -> None:
    assert Calls(100).made().startswith("100 stages")


@pytest.mark.parametrize("fault", list(OUTCOMES))
@pytest.mark.parametrize("stream", ["no", "yes"])
def test_every_fault_has_a_name_on_record(fault: Fault, stream: str) -> None:
    script = {"reviewer": lambda asked: answer(asked, accepted=True)}
    with ModelServer(script, faults=FaultPlan(at={1: fault})) as server:
        log = CallMemory()
        limits = f"timeout={1 if fault in SLUGGISH else 30} stream={stream}"
        with gateway_to(endpoint(server.url, "reviewer", f"attempts=6 {limits}"), log) as gateway:
            given = ask(gateway, question("stage"), BOUNDS)
    if fault is Fault.REFUSAL:
        assert isinstance(given, GaveUp), "who refuses is not pressed"
    else:
        assert given == Review(accepted=True)
    assert log.calls[0].outcome is OUTCOMES[fault], log.calls[0].reason
    assert "\n" not in log.calls[0].reason
    assert log.calls[0].reason
