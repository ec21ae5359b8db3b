"""Asking a model whether it is there."""

from __future__ import annotations

import pytest

from evolution.llm.calls import CallOutcome
from evolution.llm.endpoints import parse_spec
from evolution.llm.lines import Lines
from evolution.llm.pricing import parse_prices
from evolution.llm.probe import Probe, probe_model
from tests.evolution.llm.endpoint import Act, endpoint, fail, html, say
from tests.evolution.llm.way import KEY


def probed(url: str, options: str = "") -> Probe:
    lines = Lines({"TINY_KEY": KEY})
    try:
        return probe_model(parse_spec(f"{url} tiny {options}"), lines, parse_prices("tiny=1/1"))
    finally:
        lines.close()


def test_a_model_that_answers_is_good_and_was_asked_little() -> None:
    with endpoint() as script:
        probe = probed(script.url, "key_env=TINY_KEY max_tokens=9000")
    assert probe.is_good
    assert probe.usage.tokens == 120
    assert len(script.requests) == 1
    assert script.requests[0]["max_tokens"] < 9000


@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (fail(401, KEY), CallOutcome.AUTH),
        (fail(500), CallOutcome.SERVER_ERROR),
        (html, CallOutcome.MALFORMED),
        (say("x", model="other"), CallOutcome.MALFORMED),
    ],
)
def test_what_is_wrong_is_one_line_and_asked_once(act: Act, outcome: CallOutcome) -> None:
    with endpoint(act) as script:
        probe = probed(script.url, "key_env=TINY_KEY")
    assert (probe.outcome, probe.is_good, len(script.requests)) == (outcome, False, 1)
    assert probe.reason
    assert KEY not in probe.reason


def test_a_missing_key_and_a_missing_endpoint_are_told_apart() -> None:
    with endpoint() as script:
        assert "set NO_KEY" in probed(script.url, "key_env=NO_KEY").reason
    assert probed(script.url).outcome is CallOutcome.CONNECTION
