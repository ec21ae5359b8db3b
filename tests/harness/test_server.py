"""The server keeps to its word: what it serves, and how every fault looks on the wire."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.server import Ask, Fault, FaultPlan, ModelServer, Reply, ToolCall
from tests.harness.server.faults import OF_THE_MODEL
from tests.harness.server.models.filling import fitting


def script(ask: Ask) -> Reply:
    """Calls the first tool there is, else repeats what was said."""
    if ask.tools:
        return Reply(calls=(ToolCall.of(next(iter(ask.tools)), path="/a"),))
    return Reply(text=json.dumps(fitting(ask.schema)) if ask.schema else ask.text * 3)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer({"parrot": script}) as running:
        yield running


def post(
    server: ModelServer, timeout: float = 10, **more: Any
) -> tuple[int, dict[str, str], bytes]:
    """One request; status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    asked = {"model": "parrot", "messages": [{"role": "user", "content": "hello"}], **more}
    connection.request("POST", "/v1/chat/completions", json.dumps(asked))
    answer = connection.getresponse()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


TOOL = {
    "type": "function",
    "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}},
}


def test_an_answer_streamed_and_whole_says_the_same(server: ModelServer) -> None:
    whole = json.loads(post(server)[2])
    streamed = post(server, stream=True, stream_options={"include_usage": True})[2].decode()
    pieces = [line.removeprefix("data: ") for line in streamed.split("\n") if line]
    assert pieces.pop() == "[DONE]"
    chunks = [json.loads(piece) for piece in pieces]
    text = "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
    assert text == whole["choices"][0]["message"]["content"] == "hello" * 3
    assert chunks[-1]["usage"] == whole["usage"]
    assert [call.usage for call in server.served] == [whole["usage"]] * 2


def test_tools_and_structured_output(server: ModelServer) -> None:
    called = json.loads(post(server, tools=[TOOL])[2])["choices"][0]
    assert called["finish_reason"] == "tool_calls"
    assert called["message"]["tool_calls"][0]["function"]["name"] == "read_file"
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}, "much": {"type": "integer"}},
        "required": ["name"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    content = json.loads(post(server, response_format=form)[2])["choices"][0]["message"]["content"]
    assert json.loads(content) == {"name": "xx"}


def test_models_are_listed_and_unknown_ones_refused(server: ModelServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/v1/models")
    assert [m["id"] for m in json.loads(connection.getresponse().read())["data"]] == ["parrot"]
    assert post(server, model="sparrow")[0] == 404
    assert post(server, messages=[])[0] == 400


def test_latency_is_added() -> None:
    with ModelServer({"parrot": script}, latency=0.2) as server:
        begun = time.monotonic()
        assert post(server)[0] == 200
        assert time.monotonic() - begun >= 0.2


STATUSES = {
    Fault.RATE_LIMITED: 429,
    Fault.SERVER_ERROR: 500,
    Fault.BAD_GATEWAY: 502,
    Fault.OVERLOADED: 503,
    Fault.CONTEXT: 400,
}


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_as_it_comes_over_the_wire(fault: Fault, is_streamed: bool) -> None:
    broken = {Fault.RESET, Fault.CUT, Fault.HANG}
    faults = FaultPlan(at={1: fault}, retry_after="7")
    with ModelServer({"parrot": script}, faults=faults) as server:
        if fault is Fault.SLOW:
            assert _bytes_within(server, 1.2, is_streamed) <= 3
        elif fault in broken:
            with pytest.raises((OSError, http.client.HTTPException)):
                post(server, timeout=0.7, stream=is_streamed)
        else:
            status, headers, body = post(
                server,
                stream=is_streamed,
                stream_options={"include_usage": True} if is_streamed else None,
                tools=[TOOL],
            )
            assert status == STATUSES.get(fault, 200)
            assert headers.get("retry-after") == ("7" if fault is Fault.RATE_LIMITED else None)
            if status == 200:
                assert _is_as_named(fault, body.decode())
        tells = fault in OF_THE_MODEL - {Fault.CONTEXT} or fault is Fault.WRONG_MODEL
        assert [call.usage is not None for call in server.served] == [tells]


def _bytes_within(server: ModelServer, seconds: float, is_streamed: bool) -> int:
    """How much of an answer comes in so much time."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    asked = {"model": "parrot", "messages": [{"role": "user", "content": "hello"}]}
    connection.request("POST", "/v1/chat/completions", json.dumps({**asked, "stream": is_streamed}))
    answer = connection.getresponse()
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end and answer.read(1):
        count += 1
    connection.close()
    return count


def _is_as_named(fault: Fault, body: str) -> bool:
    match fault:
        case Fault.HTML:
            return body.startswith("<!DOCTYPE html>")
        case Fault.TRUNCATED:
            return not body.rstrip().endswith(("}", "[DONE]"))
        case Fault.HUGE:
            return len(body) > 10_000_000
    marks = {
        Fault.NAN_USAGE: "NaN",
        Fault.WRONG_MODEL: "gpt-of-somebody-else",
        Fault.REFUSAL: "I can't help with that.",
        Fault.EMPTY: "stop",
        Fault.BAD_ARGUMENTS: ",,",
        Fault.WRONG_SCHEMA: "42",
        Fault.NOWHERE: "make_it_so",
        Fault.WRONG_LANGUAGE: "\\u62b1\\u6b49",
    }
    return marks[fault] in body


def _asks(count: int) -> list[Ask]:
    return [Ask("parrot", ({"role": "user", "content": f"{n}"},)) for n in range(count)]


def test_faults_are_drawn_from_the_question_in_the_share_that_was_asked_for() -> None:
    plan = FaultPlan(share=0.2)
    drawn = [plan.draw(ask, 1, 0) for ask in _asks(2_000)]
    assert drawn == [plan.draw(ask, 1, 0) for ask in _asks(2_000)]
    assert 0.17 < sum(fault is not None for fault in drawn) / len(drawn) < 0.23
    assert {*drawn} == {None, *Fault}, "every kind comes up"


def test_what_the_model_said_stays_and_what_broke_on_the_way_passes() -> None:
    plan = FaultPlan(share=0.5)
    for ask in _asks(100):
        drawn = {plan.draw(ask, attempt, 0) for attempt in range(1, 30)}
        lasting = drawn & OF_THE_MODEL
        assert drawn == lasting if lasting else None in drawn
