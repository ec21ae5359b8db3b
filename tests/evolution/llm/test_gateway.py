"""The gateway: recalls, replays, stops, holds back, hides keys; over a real socket."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic_ai import Agent

from evolution.llm.budget import Budget, Limits
from evolution.llm.calls import BudgetStop, CallOutcome, CallRecord, Role, Usage
from evolution.llm.endpoints import ModelConfigError
from evolution.llm.lines import Lines
from evolution.llm.pricing import Prices
from evolution.llm.replay import CallMemory, ReplayMiss
from tests.evolution.llm.endpoint import (
    Act,
    Handler,
    call_tool,
    completion,
    cut,
    endpoint,
    fail,
    hang,
    pause,
    reply,
    reset,
    say,
)
from tests.evolution.llm.way import KEY, Way, way_to


def explore(way: Way, place: str = "7/length/modify/0/0") -> str:
    """A conversation of three turns with a tool."""
    agent: Agent[None, str] = Agent(way.gateway.model_for(Role.MODIFIER), instructions="be exact")

    @agent.tool_plain
    def look(at: str) -> str:
        """Look at a file."""
        return f"{at} is empty"

    with way.gateway.at(place, prompt_digest="d1"):
        return way.gateway.run(agent, "what is in there?").output


def exploring() -> list[Act]:
    """What a model says in such a conversation; the ids of its calls are new each time."""
    stamp = str(time.monotonic_ns())
    return [
        call_tool("look", '{"at": "a"}', f"call_{stamp}a"),
        call_tool("look", '{"at": "b"}', f"call_{stamp}b"),
        say("nothing", id=stamp),
    ]


def test_a_conversation_is_kept_turn_by_turn() -> None:
    with endpoint(*exploring()) as script, way_to(script) as way:
        assert explore(way) == "nothing"
    assert [call.place for call in way.log.calls] == [f"7/length/modify/0/0/{n}" for n in (1, 2, 3)]
    first = way.log.calls[0]
    assert (first.role, first.prompt_digest, first.outcome) == (
        Role.MODIFIER,
        "d1",
        CallOutcome.ANSWERED,
    )
    assert first.model == f"{script.url} tiny"
    assert b"be exact" in first.request
    assert b'"look"' in first.request
    assert first.seconds > 0
    assert way.log.spent() == Usage(300, 60, 0, pytest.approx(0.0009))


def test_half_a_character_in_an_answer_spoils_no_later_turn() -> None:
    whole = "half \ufffd, whole \U0001f600"
    with endpoint(call_tool("\ud800", "{}"), say("half \ud800, whole \U0001f600")) as script:
        with way_to(script) as way:
            assert explore(way) == whole
        assert len(script.requests) == 2
        with way_to(script, log=CallMemory(way.log.calls)) as again:
            assert explore(again) == whole
        assert len(script.requests) == 2


def test_a_resumed_step_repeats_no_call_and_goes_on_where_it_stood() -> None:
    log = CallMemory()
    first, second, third = exploring()
    with (
        endpoint(first, second, *[fail(500)] * 3) as script,
        way_to(script, log=log) as way,
        pytest.raises(Exception, match="the endpoint failed"),
    ):
        explore(way)
    with endpoint(third) as script, way_to(script, log=log) as way:
        assert explore(way) == "nothing"
    assert len(script.requests) == 1
    answered = [call.place for call in log.calls if call.outcome is CallOutcome.ANSWERED]
    assert len(answered) == len(set(answered)) == 3
    # What was paid before counts for the step, too.
    assert way.gateway.budget.step_spent.tokens == 360


def test_keys_do_not_depend_on_ids_and_times() -> None:
    keys = []
    for _ in range(2):
        with endpoint(*exploring()) as script, way_to(script) as way:
            explore(way)
        keys.append([call.key for call in way.log.calls])
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == 3


def test_a_replay_needs_no_endpoint_and_no_key_and_misses_nothing_silently() -> None:
    with endpoint(*exploring()) as script, way_to(script) as way:
        explore(way)
    kept = CallMemory(way.log.calls)
    assert kept.calls == way.log.calls
    with way_to(
        "http://127.0.0.1:9/v1",
        "key_env=NOT_SET temperature=1",
        log=kept,
        is_replay=True,
        name="other",
    ) as way:
        assert explore(way) == "nothing"
        with pytest.raises(ReplayMiss, match="elsewhere/1"):
            explore(way, "elsewhere")
    assert len(kept.calls) == 3


def test_the_same_request_elsewhere_is_another_call() -> None:
    with endpoint() as script, way_to(script) as way:
        way.ask(place="a")
        way.ask(place="b")
        way.ask(place="a")
    assert len(script.requests) == 2


def test_two_workers_at_the_same_call_go_on_with_the_same_answer() -> None:
    both = threading.Barrier(2)

    def late(text: str) -> Act:
        def act(h: Handler) -> None:
            both.wait(10)
            say(text)(h)

        return act

    with (
        endpoint(late("one"), late("two")) as script,
        way_to(script) as way,
        ThreadPoolExecutor(2) as pool,
    ):
        answers = list(pool.map(lambda _: way.ask(), range(2)))
        assert answers == [way.ask()] * 2
    assert len(script.requests) == len(way.log.calls) == 2


def test_a_call_outside_of_every_place_is_a_fault_of_ours() -> None:
    with endpoint() as script, way_to(script) as way:
        agent: Agent[None, str] = Agent(way.gateway.model_for(Role.JUDGE))
        with pytest.raises(RuntimeError, match="outside of every place"):
            way.gateway.run(agent, "hello")
    assert script.requests == []


def spend(way: Way, calls: int) -> None:
    for number in range(calls):
        way.ask(place=str(number))


def test_the_hard_stop_comes_before_the_call_and_says_why() -> None:
    budget = Budget(Limits(tokens=2000))
    with (
        endpoint() as script,
        way_to(script, budget=budget) as way,
        pytest.raises(BudgetStop, match="of 2000 tokens"),
    ):
        spend(way, 20)
    made = len(script.requests)
    assert 0 < made < 17
    assert way.log.calls[-1].outcome is CallOutcome.BUDGET
    assert way.log.calls[-1].usage == Usage()
    assert way.log.spent().tokens == 120 * made


def test_calls_at_once_exceed_a_budget_by_what_they_take_beyond_the_expectation_only() -> None:
    with endpoint(*[pause(0.1)] * 20) as script:
        budget = Budget(Limits(tokens=3400))
        with way_to(script, budget=budget, options="concurrency=8") as way:

            def one(number: int) -> bool:
                try:
                    return way.ask(place=str(number)) == "well done"
                except BudgetStop:
                    return False

            with ThreadPoolExecutor(8) as pool:
                made = sum(pool.map(one, range(20)))
    assert made == len(script.requests) < 20
    assert way.log.spent().tokens <= 3400


def test_a_budget_in_usd_needs_every_price() -> None:
    budget = Budget(Limits(usd=1))
    with (
        endpoint() as script,
        pytest.raises(ModelConfigError, match="needs a price for"),
        way_to(script, budget=budget, prices=Prices()),
    ):
        pass


def test_an_endpoint_sees_no_more_calls_at_once_than_it_may() -> None:
    with (
        endpoint(*[pause(0.1)] * 6) as script,
        way_to(script, options="concurrency=2") as way,
        ThreadPoolExecutor(6) as pool,
    ):
        list(pool.map(lambda n: way.ask(place=str(n)), range(6)))
    assert script.most_at_once == 2


def test_the_rate_holds() -> None:
    with endpoint() as script, way_to(script, options="per_minute=300") as way:
        way.ask(place="warm")
        started = time.monotonic()
        for number in range(3):
            way.ask(place=str(number))
        assert time.monotonic() - started >= 2 * 60 / 300
    assert len(script.requests) == 4


def test_retry_after_holds_everybody_back() -> None:
    with (
        endpoint(fail(429, retry_after="1")) as script,
        way_to(script) as way,
        ThreadPoolExecutor(2) as pool,
    ):
        first = pool.submit(way.ask, place="a")
        while not way.log.calls:
            time.sleep(0.01)
        turned_away = time.monotonic()
        assert way.ask(place="b") == "well done"
        assert time.monotonic() - turned_away >= 0.8
        assert first.result() == "well done"
    assert len(script.requests) == 3


def test_a_cancelled_call_is_recorded_with_an_estimate() -> None:
    with endpoint(hang) as script, way_to(script) as way:
        agent: Agent[None, str] = Agent(way.gateway.model_for(Role.JUDGE))

        async def give_up() -> None:
            async with asyncio.timeout(0.3):
                await agent.run("hello")

        with way.gateway.at("here"), pytest.raises(TimeoutError):
            asyncio.run(give_up())
        deadline = time.monotonic() + 5
        while not way.log.calls and time.monotonic() < deadline:
            time.sleep(0.01)
    (call,) = way.log.calls
    assert (call.outcome, call.reason) == (CallOutcome.CANCELLED, "stopped by the caller")
    assert call.usage.is_estimated
    assert call.usage.input_tokens > 0


def test_a_gateway_that_closes_records_what_was_under_way() -> None:
    with endpoint(hang) as script:
        with way_to(script) as way, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(way.ask)
            while not script.requests:
                time.sleep(0.01)
            way.gateway.close()
            assert isinstance(waiting.exception(), BaseException)
        assert [call.outcome for call in way.log.calls] == [CallOutcome.CANCELLED]


FORKING = """
import asyncio, os
from evolution.llm.lines import Lines
lines = Lines({})
assert lines.submit(asyncio.sleep(0, "parent")).result(10) == "parent"
child = os.fork()
if child == 0:
    said = lines.submit(asyncio.sleep(0, "child")).result(10)
    os._exit(0 if said == "child" else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
COLD = """
import sys
import evolution.engine, evolution.llm.calls, evolution.llm.endpoints, evolution.llm.pricing
import evolution.llm.budget, evolution.llm.replay, evolution.llm.breaker
sys.exit("pydantic_ai" in sys.modules or "genai_prices" in sys.modules)
"""


@pytest.mark.parametrize("code", [FORKING, COLD], ids=["a fork", "what needs no model"])
def test_a_process_of_its_own(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_log_is_touched_by_one_thread_that_runs_no_event_loop() -> None:
    seen: set[int] = set()

    class Watching(CallMemory):
        def note(self) -> None:
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            seen.add(threading.get_ident())

        def recall(self, key: str) -> CallRecord | None:
            self.note()
            return super().recall(key)

        def reserve(self, expected: Usage, seconds: float, fits: Callable[[Usage], None]) -> int:
            self.note()
            return super().reserve(expected, seconds, fits)

        def record(self, call: CallRecord, reserved: int | None = None) -> None:
            self.note()
            super().record(call, reserved)

    with (
        endpoint() as script,
        way_to(script, log=Watching()) as way,
        ThreadPoolExecutor(3) as pool,
    ):
        list(pool.map(lambda n: way.ask(place=str(n)), range(6)))
    assert len(seen) == 1
    assert len(way.log.calls) == 6


ECHOES: list[Act] = [
    fail(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
    fail(400, f"bad header Authorization: Bearer {KEY}"),
    fail(429, KEY, "insufficient_quota"),
    fail(500, KEY),
    say(f"your key is {KEY}"),
    say("", message={"content": None, "refusal": f"not with {KEY}"}),
    call_tool(KEY, f'{{"key": "{KEY}"}}'),
    reply(completion(model=KEY)),
    reply({"choices": KEY}),
    lambda h: h.send(200, KEY.encode(), "text/plain"),
    lambda h: h.send(307, b"", location=f"http://127.0.0.1:9/{KEY}"),
    cut,
    reset,
]


@pytest.mark.parametrize("act", ECHOES, ids=range(len(ECHOES)))
def test_a_key_stays_where_it_is(
    act: Act, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = ""
    with endpoint(*[act] * 3) as script, way_to(script) as way:
        try:
            shown += repr(way.ask(f"is {KEY} my key?"))
        except Exception as error:
            shown += "".join(traceback.format_exception(error, capture_locals=True)) + repr(error)
        assert script.headers[0]["authorization"] == f"Bearer {KEY}", "it was sent, though"
        shown += repr(way.lines) + repr(way.gateway) + repr(way.lines.line)
        for call in way.log.calls:
            shown += repr(call)
            shown += call.request.decode() + call.response.decode()
    shown += caplog.text + "".join(capfd.readouterr())
    assert way.log.calls
    # The question itself is the test's own, and stands in its locals.
    assert KEY not in shown.replace(f"is {KEY} my key?", "")


def test_a_key_is_found_as_json_writes_it() -> None:
    key = 'a"quoted\\key'
    lines = Lines({"OPENAI_API_KEY": key})
    assert lines.redact(f"it is {key}.") == "it is [key]."
    assert lines.redact(json.dumps(f"it is {key}.")) == '"it is [key]."'


def test_no_other_host_is_ever_called() -> None:
    with endpoint() as other:
        target = f"{other.url}/chat/completions"
        bounce: Act = lambda h: h.send(307, b"", location=target)  # noqa: E731
        with (
            endpoint(bounce) as script,
            way_to(script) as way,
            pytest.raises(Exception, match="never followed"),
        ):
            way.ask()
        assert other.requests == []


def test_a_proxy_that_the_process_environment_names_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with endpoint() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with way_to("http://models.invalid/v1") as way:
            assert way.ask() == "well done"
        assert len(proxy.requests) == 1
        with endpoint() as script, way_to(script) as way:
            way.ask()
        assert len(proxy.requests) == 1
