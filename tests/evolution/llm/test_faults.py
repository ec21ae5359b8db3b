"""Each fault of an endpoint, over a real socket: its outcome, its cost, what the caller gets."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from evolution.llm.breaker import FIRST_PAUSE, THRESHOLD
from evolution.llm.calls import CallFailed, CallOutcome, ModelUnavailable, Usage
from evolution.llm.endpoints import parse_spec
from evolution.llm.faults import RETRY_AFTER_CAP, Fault, retry_after_seconds, wait_seconds
from tests.evolution.llm.endpoint import (
    Act,
    Handler,
    completion,
    cut,
    drip,
    endpoint,
    fail,
    flood,
    hang,
    html,
    reply,
    reset,
    say,
)
from tests.evolution.llm.way import KEY, way_to


def zipped(handler: Handler) -> None:
    handler.send(200, b"\x1f\x8b", Content_Encoding="gzip")


def cut_stream(handler: Handler) -> None:
    piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
    choice = {"index": 0, "delta": {"role": "assistant", "content": "well"}, "finish_reason": None}
    body = f"data: {json.dumps({**piece, 'choices': [choice]})}\n\n".encode()
    handler.send(200, body, "text/event-stream", length=len(body) + 50)
    handler.close_connection = True


def short_stream(handler: Handler) -> None:
    body = (
        b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "ch'
    )
    handler.send(200, body, "text/event-stream")


PASSING: list[tuple[str, Act, str, CallOutcome, bool]] = [
    # name, what the endpoint does first, options, outcome, whether it is paid for (an estimate)
    ("429", fail(429, "slow down", retry_after="0"), "", CallOutcome.RATE_LIMITED, False),
    ("500", fail(500), "", CallOutcome.SERVER_ERROR, False),
    (
        "502 in html",
        lambda h: h.send(502, b"<html>", "text/html"),
        "",
        CallOutcome.SERVER_ERROR,
        False,
    ),
    ("503", fail(503), "", CallOutcome.SERVER_ERROR, False),
    ("504", fail(504), "", CallOutcome.SERVER_ERROR, False),
    ("reset", reset, "", CallOutcome.CONNECTION, True),
    ("hang", hang, "timeout=0.3", CallOutcome.TIMEOUT, True),
    ("one byte at a time", drip, "timeout=0.5", CallOutcome.TIMEOUT, True),
    ("cut in the JSON", cut, "", CallOutcome.CONNECTION, True),
    ("cut stream", cut_stream, "stream=yes", CallOutcome.CONNECTION, True),
    ("short stream", short_stream, "stream=yes", CallOutcome.MALFORMED, True),
    ("HTML with 200", html, "", CallOutcome.MALFORMED, True),
    (
        "half a JSON with 200",
        lambda h: h.send(200, b'{"id": "x", "ch'),
        "",
        CallOutcome.MALFORMED,
        True,
    ),
    ("a list", reply([1]), "", CallOutcome.MALFORMED, True),
    ("no choices", reply(completion(choices=[])), "", CallOutcome.MALFORMED, True),
    ("odd choices", reply({"choices": "x"}), "", CallOutcome.MALFORMED, True),
    ("compressed", zipped, "", CallOutcome.MALFORMED, True),
    ("10 MB", flood(10_000_000), "", CallOutcome.TOO_LARGE, True),
    ("1 GB", flood(1_000_000_000, announced=True), "", CallOutcome.TOO_LARGE, True),
]


@pytest.mark.parametrize(
    ("act", "options", "outcome", "is_paid"),
    [case[1:] for case in PASSING],
    ids=[case[0] for case in PASSING],
)
def test_a_fault_of_the_moment_is_named_and_the_call_made_again(
    act: Act, options: str, outcome: CallOutcome, is_paid: bool
) -> None:
    script_after = [] if "stream" not in options else [stream_of("well ", "done")]
    with endpoint(act, *script_after) as script, way_to(script, options=options) as way:
        assert way.ask() == "well done"
    first, last = way.log.calls
    assert (first.outcome, first.attempt, first.place) == (outcome, 1, "here/1")
    assert first.reason
    assert first.usage.is_estimated == is_paid
    assert (first.usage.tokens > 0) == is_paid
    assert first.usage.output_tokens <= 16_000, "never more than the model was allowed"
    assert (last.outcome, last.attempt, last.key) == (CallOutcome.ANSWERED, 2, first.key)
    assert last.usage == Usage(100, 20, 0, 0.0003)


def stream_of(*texts: str) -> Act:
    """A whole answer as a stream of events."""
    piece = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
    chunks = [
        {**piece, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}
        for text in texts
    ]
    chunks.append({**piece, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**piece, "choices": [], "usage": completion()["usage"]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return lambda handler: handler.send(200, body.encode(), "text/event-stream")


LASTING: list[tuple[str, Act, CallOutcome, str]] = [
    (
        "401",
        fail(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
        CallOutcome.AUTH,
        "key",
    ),
    ("403", fail(403, "not yours"), CallOutcome.AUTH, "not yours"),
    (
        "404",
        fail(404, "no such model", "model_not_found"),
        CallOutcome.BAD_REQUEST,
        "no such model",
    ),
    ("400", fail(400, "temperature is not for you"), CallOutcome.BAD_REQUEST, "temperature"),
    ("quota", fail(429, "pay", "insufficient_quota"), CallOutcome.RATE_LIMITED, "quota"),
    (
        "redirect",
        lambda h: h.send(307, b"", location="http://127.0.0.1:9/v1/chat/completions"),
        CallOutcome.BAD_REQUEST,
        "never followed",
    ),
]


@pytest.mark.parametrize(
    ("act", "outcome", "said"), [case[1:] for case in LASTING], ids=[case[0] for case in LASTING]
)
def test_what_only_the_operator_can_change_is_not_tried_again(
    act: Act, outcome: CallOutcome, said: str
) -> None:
    with (
        endpoint(act) as script,
        way_to(script) as way,
        pytest.raises(ModelUnavailable, match=said) as caught,
    ):
        way.ask()
    assert caught.value.outcome is outcome
    assert caught.value.endpoint == script.url
    assert len(script.requests) == 1
    assert [call.outcome for call in way.log.calls] == [outcome]


LLAMA_CPP = "request (4270 tokens) exceeds the available context size (4096 tokens), try increasing"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("maximum context length is 8192 tokens", "context_length_exceeded"),
        ("This model's maximum context length is 4096 tokens.", "400"),  # vLLM
        (LLAMA_CPP, "exceed_context_size_error"),
    ],
)
def test_a_request_that_is_too_long_is_the_roles_own_affair_and_stays_so(
    said: str, code: str
) -> None:
    long = fail(400, said, code)
    with endpoint(long) as script, way_to(script) as way:
        for _ in range(2):
            with pytest.raises(CallFailed, match="too long") as caught:
                way.ask()
            assert caught.value.outcome is CallOutcome.CONTEXT_OVERFLOW
        assert way.ask(place="elsewhere") == "well done"
    assert len(script.requests) == 2, "the overflow was recalled, not repeated"


def test_answers_without_end_are_paid_for_twice_at_most() -> None:
    with endpoint(*[flood(9_000_000)] * 3) as script, way_to(script) as way:
        for _ in range(2):
            with pytest.raises(CallFailed, match="larger than 8 MiB"):
                way.ask()
    assert len(script.requests) == 2, "what it came to was recalled, not repeated"


def test_one_answer_without_end_is_no_end_of_its_call() -> None:
    with (
        endpoint(flood(9_000_000), say("well done")) as script,
        way_to(script, "attempts=1") as way,
    ):
        with pytest.raises(ModelUnavailable, match="larger than 8 MiB"):
            way.ask()
        assert way.ask() == "well done"
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": float("nan"), "completion_tokens": 1, "total_tokens": 1},
        {"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": 1},
        {"prompt_tokens": float("inf"), "completion_tokens": 1, "total_tokens": 1},
        {"prompt_tokens": 1e300, "completion_tokens": 1, "total_tokens": 1},
        {"prompt_tokens": "many", "completion_tokens": [], "total_tokens": {}},
        None,
    ],
)
def test_nonsense_as_usage_becomes_an_estimate(usage: object) -> None:
    with endpoint(reply(completion(usage=usage))) as script, way_to(script) as way:
        assert way.ask() == "well done"
    (call,) = way.log.calls
    assert call.usage.is_estimated
    assert 0 < call.usage.tokens < 1000


def test_a_refusal_and_an_empty_answer_are_named_and_final() -> None:
    refusal = say("", message={"content": None, "refusal": "I will not"})
    with endpoint(refusal, say("")) as script, way_to(script) as way:
        for _ in range(2):
            with pytest.raises(Exception, match="I will not"):
                way.ask()
        # The agent asks an empty answer again by itself: that is the next turn.
        assert way.ask(place="elsewhere") == "well done"
    outcomes = [(call.place, call.outcome) for call in way.log.calls]
    assert outcomes == [
        ("here/1", CallOutcome.REFUSED),
        ("elsewhere/1", CallOutcome.EMPTY),
        ("elsewhere/2", CallOutcome.ANSWERED),
    ]


def test_nobody_there_costs_nothing() -> None:
    with endpoint() as script:
        pass
    with way_to(script.url) as way, pytest.raises(ModelUnavailable) as caught:
        way.ask()
    assert caught.value.outcome is CallOutcome.CONNECTION
    assert [call.usage for call in way.log.calls] == [Usage()] * 3


def test_an_endpoint_that_fails_on_and_on_is_left_alone() -> None:
    with endpoint(*[fail(500)] * 30) as script, way_to(script, "attempts=20") as way:
        # Pauses of 5, 10 and 20 seconds would be sat out: let them be behind us.
        way.lines.line(parse_spec(f"{script.url} tiny")).breaker.pauses = 3
        with pytest.raises(ModelUnavailable, match="left alone for") as caught:
            way.ask()
        assert caught.value.outcome is CallOutcome.CIRCUIT_OPEN
        seen = len(script.requests)
        started = time.monotonic()
        with pytest.raises(ModelUnavailable, match="left alone for"):
            way.ask(place="elsewhere")
        assert time.monotonic() - started < 5
    assert len(script.requests) == seen < 20
    assert way.log.calls[-1].outcome is CallOutcome.CIRCUIT_OPEN
    assert way.log.calls[-1].usage == Usage()


def test_a_short_pause_is_sat_out() -> None:
    with endpoint(*[fail(500)] * THRESHOLD) as script, way_to(script, "attempts=20") as way:
        started = time.monotonic()
        assert way.ask() == "well done"
        assert time.monotonic() - started >= FIRST_PAUSE
    assert len(script.requests) == THRESHOLD + 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("Tue, 01 Dec 2026 12:00:30 GMT", 30.0),
        ("Tue, 01 Dec 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("", None),
        ("9" * 40, None),
        ("Fri, 31 Dec 99999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_both_forms(text: str, seconds: float | None) -> None:
    assert retry_after_seconds(text, datetime(2026, 12, 1, 12, tzinfo=UTC)) == seconds


def test_waits_double_with_a_jitter_that_is_always_the_same_and_have_a_cap() -> None:
    fault = Fault(CallOutcome.SERVER_ERROR, "no")
    waits = [wait_seconds(fault, "key", n, 1.0) for n in range(1, 12)]
    assert waits == [wait_seconds(fault, "key", n, 1.0) for n in range(1, 12)]
    assert all(2 ** (n - 1) / 2 <= wait <= 2 ** (n - 1) for n, wait in enumerate(waits[:6], 1))
    assert max(waits) <= 60
    assert wait_seconds(fault, "other", 1, 1.0) != waits[0]
    asked = Fault(CallOutcome.RATE_LIMITED, "no", retry_after=7.0)
    assert wait_seconds(asked, "key", 1, 1.0) == 7.0
    for_ever = Fault(CallOutcome.RATE_LIMITED, "no", retry_after=10**9)
    assert wait_seconds(for_ever, "key", 1, 1.0) == RETRY_AFTER_CAP


def test_another_models_answer_is_not_taken_unless_the_operator_says_so() -> None:
    other = say("well done", model="vendor/other-7b")
    with endpoint(other, other, other) as script, way_to(script) as way:
        with pytest.raises(ModelUnavailable, match="add the option answers_as=vendor/other-7b"):
            way.ask()
        assert len(script.requests) == 2, "each answer is paid for"
        assert way.log.spent() == Usage(200, 40, 0, pytest.approx(0.0006))
    with endpoint(other) as script, way_to(script, "answers_as=vendor/other-7b") as way:
        assert way.ask() == "well done"


@pytest.mark.parametrize("said", ["tiny-2026-11-13", "models/tiny", "TINY", "tiny:latest"])
def test_a_version_of_the_model_is_the_model(said: str) -> None:
    with endpoint(say("well done", model=said)) as script, way_to(script) as way:
        assert way.ask() == "well done"
    assert len(script.requests) == 1
