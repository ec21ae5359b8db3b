"""The hosted providers' own protocols, over a real socket: answers, usage, keys, faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from evolution.llm.calls import CallFailed, CallOutcome, ModelUnavailable, Usage
from tests.evolution.llm.endpoint import Act, Handler, cut, endpoint, flood, reply, reset
from tests.evolution.llm.way import KEY, way_to

NAMES = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-flash"}


def openai_says(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 10}},
    }


def anthropic_says(text: str) -> dict[str, Any]:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "cache_read_input_tokens": 10, "output_tokens": 5},
    }


def google_says(text: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r",
        "usageMetadata": {
            "promptTokenCount": 50,
            "candidatesTokenCount": 5,
            "totalTokenCount": 55,
            "cachedContentTokenCount": 10,
        },
    }


SAYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "openai": openai_says,
    "anthropic": anthropic_says,
    "google": google_says,
}


def error(provider: str, status: int, kind: str, message: str) -> Act:
    """An error as the provider writes it."""
    body: dict[str, Any] = {
        "openai": {"error": {"message": message, "type": kind, "code": kind}},
        "anthropic": {"type": "error", "error": {"type": kind, "message": message}},
        "google": {"error": {"code": status, "message": message, "status": kind}},
    }[provider]

    def act(handler: Handler) -> None:
        handler.send(status, json.dumps(body).encode())

    return act


@pytest.mark.parametrize("provider", NAMES)
def test_an_answer_its_usage_and_its_price(provider: str) -> None:
    with (
        endpoint(reply(SAYS[provider]("ready"))) as script,
        way_to(script, provider=provider, name=NAMES[provider]) as way,
    ):
        assert way.ask() == "ready"
    (call,) = way.log.calls
    assert call.outcome is CallOutcome.ANSWERED
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cached_tokens) == (
        50,
        5,
        10,
    )
    assert not call.usage.is_estimated
    assert KEY in str(script.headers[0])
    assert KEY not in str(script.requests[0])


FAULTS = [
    ("openai", 429, "rate_limit_exceeded", "slow", CallOutcome.RATE_LIMITED),
    ("anthropic", 429, "rate_limit_error", "slow", CallOutcome.RATE_LIMITED),
    ("anthropic", 529, "overloaded_error", "busy", CallOutcome.SERVER_ERROR),
    ("google", 429, "RESOURCE_EXHAUSTED", "slow", CallOutcome.RATE_LIMITED),
    ("google", 503, "UNAVAILABLE", "busy", CallOutcome.SERVER_ERROR),
]


@pytest.mark.parametrize(("provider", "status", "kind", "message", "outcome"), FAULTS)
def test_faults_of_the_moment_are_retried_by_the_gateway_alone(
    provider: str, status: int, kind: str, message: str, outcome: CallOutcome
) -> None:
    acts = [error(provider, status, kind, message), reply(SAYS[provider]("ready"))]
    with (
        endpoint(*acts) as script,
        way_to(script, provider=provider, name=NAMES[provider]) as way,
    ):
        assert way.ask() == "ready"
    assert [call.outcome for call in way.log.calls] == [outcome, CallOutcome.ANSWERED]
    assert len(script.requests) == 2
    assert way.log.calls[0].usage == Usage()


@pytest.mark.parametrize("provider", NAMES)
@pytest.mark.parametrize(
    ("act", "outcome"),
    [
        (reset, CallOutcome.CONNECTION),
        (cut, CallOutcome.CONNECTION),
        (flood(9_000_000), CallOutcome.TOO_LARGE),
        (reply({"odd": 1}), CallOutcome.MALFORMED),
        (reply({"error": {"message": "boom"}}), CallOutcome.MALFORMED),
    ],
    ids=["reset", "cut", "flood", "odd", "error with 200"],
)
def test_broken_answers_are_named_whoever_gives_them(
    provider: str, act: Act, outcome: CallOutcome
) -> None:
    with (
        endpoint(act, reply(SAYS[provider]("ready"))) as script,
        way_to(script, provider=provider, name=NAMES[provider]) as way,
    ):
        assert way.ask() == "ready"
    assert [call.outcome for call in way.log.calls] == [outcome, CallOutcome.ANSWERED]


LASTING = [
    ("anthropic", 401, "authentication_error", "invalid x-api-key", CallOutcome.AUTH),
    ("anthropic", 404, "not_found_error", "model: claude", CallOutcome.BAD_REQUEST),
    ("google", 403, "PERMISSION_DENIED", "key", CallOutcome.AUTH),
    ("google", 404, "NOT_FOUND", "no such model", CallOutcome.BAD_REQUEST),
]


@pytest.mark.parametrize(("provider", "status", "kind", "message", "outcome"), LASTING)
def test_what_only_the_operator_can_change(
    provider: str, status: int, kind: str, message: str, outcome: CallOutcome
) -> None:
    with (
        endpoint(error(provider, status, kind, f"{message} {KEY}")) as script,
        way_to(script, provider=provider, name=NAMES[provider]) as way,
        pytest.raises(ModelUnavailable) as caught,
    ):
        way.ask()
    assert caught.value.outcome is outcome
    assert KEY not in str(caught.value)
    assert len(script.requests) == 1


OVERFLOWS = [
    ("anthropic", "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    (
        "google",
        "INVALID_ARGUMENT",
        "The input token count exceeds the maximum number of tokens",
    ),
]


@pytest.mark.parametrize(("provider", "kind", "message"), OVERFLOWS)
def test_too_long_a_request(provider: str, kind: str, message: str) -> None:
    with (
        endpoint(error(provider, 400, kind, message)) as script,
        way_to(script, provider=provider, name=NAMES[provider]) as way,
        pytest.raises(CallFailed) as caught,
    ):
        way.ask()
    assert caught.value.outcome is CallOutcome.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("provider", "name", "field"),
    [("compatible", "tiny", "max_tokens"), ("openai", "gpt-4o", "max_completion_tokens")],
)
def test_an_answer_is_bounded_in_the_words_its_endpoint_understands(
    provider: str, name: str, field: str
) -> None:
    answer = reply({**openai_says("ready"), "model": name})
    with (
        endpoint(answer) as script,
        way_to(script, "max_tokens=77 temperature=0.5", provider=provider, name=name) as way,
    ):
        way.ask()
    assert script.requests[0][field] == 77
    assert script.requests[0]["temperature"] == 0.5
