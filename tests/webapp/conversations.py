"""Recorded calls for the tests of the pages: a step in which models made an environment."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from evolution.llm.calls import CallOutcome, CallRecord, Role, Usage
from webapp.models import Environment, EvolutionRun, EvolutionStep, MeasuredTrial, SolverKind
from webapp.services.attempts import (
    Attempt,
    find_solver,
    measured_name,
    next_number,
    record_attempt,
)
from webapp.services.calls import Place, give_to_environment, store_call

PROMPT = hashlib.sha256(b"a prompt").hexdigest()
USAGE = Usage(1_200, 300, 100, 0.0042)
MODEL = "compatible:http://localhost:8000/v1 qwen3:8b"


def user(text: str) -> dict[str, Any]:
    """What the harness asks, in pydantic-ai's form."""
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


def result(tool: str, text: str) -> dict[str, Any]:
    """What a tool brought back."""
    part = {"part_kind": "tool-return", "tool_name": tool, "content": text, "tool_call_id": "1"}
    return {"kind": "request", "parts": [part]}


def says(text: str) -> dict[str, Any]:
    """An answer in words."""
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def uses(tool: str, **arguments: Any) -> dict[str, Any]:
    """An answer that calls a tool."""
    part = {
        "part_kind": "tool-call",
        "tool_name": tool,
        "args": json.dumps(arguments),
        "tool_call_id": "1",
    }
    return {"kind": "response", "parts": [part]}


def make_call(
    place: str = "7/length/propose/1/1",
    *,
    role: Role = Role.PROPOSER,
    outcome: CallOutcome = CallOutcome.ANSWERED,
    messages: list[dict[str, Any]] | None = None,
    answer: dict[str, Any] | None = None,
    usage: Usage = USAGE,
    attempt: int = 1,
    reason: str = "",
    seconds: float = 2.5,
) -> CallRecord:
    """One recorded attempt."""
    request = json.dumps({"messages": messages or [user("Propose.")]}).encode()
    return CallRecord(
        key=hashlib.sha256(place.encode() + b"\0" + request).hexdigest(),
        place=place,
        role=role,
        model=MODEL,
        prompt_digest=PROMPT,
        attempt=attempt,
        outcome=outcome,
        reason=reason,
        request=request,
        response=json.dumps(answer).encode() if answer else b"",
        usage=usage,
        seconds=seconds,
    )


def tell_story(run: EvolutionRun, step: EvolutionStep, child: Environment, text: str = "") -> None:
    """The calls in which models made `child`, two faults among them; `text` is said in each."""
    place = Place(run=run, step=step)
    ask = user(f"You are given an environment. Make it harder. {text}")
    first = uses("run", command=f"ls -la /bundle {text}")
    told = [
        make_call(messages=[ask], answer=says(f"Insert a sealed second order. {text}")),
        make_call(
            "7/length/review/1/1",
            role=Role.PLAN_REVIEWER,
            outcome=CallOutcome.RATE_LIMITED,
            reason=f"429, asked to wait 3 s {text}",
            usage=Usage(),
        ),
        make_call(
            "7/length/review/1/1", role=Role.PLAN_REVIEWER, attempt=2, answer=says("Accepted.")
        ),
        make_call("7/length/modify/1/1", role=Role.MODIFIER, messages=[ask], answer=first),
        make_call(
            "7/length/modify/1/2",
            role=Role.MODIFIER,
            messages=[ask, first, result("run", f"instruction.md\nsolution\n{text}")],
            outcome=CallOutcome.TIMEOUT,
            reason="nothing came for 60 s",
            usage=Usage(2_000, 40, 0, 0.0061, is_estimated=True),
            seconds=60.0,
        ),
        make_call(
            "7/length/modify/1/2",
            role=Role.MODIFIER,
            attempt=2,
            messages=[ask, first, result("run", f"instruction.md\nsolution\n{text}")],
            answer=uses("finish", summary=f"The second order is sealed. {text}"),
        ),
    ]
    give_to_environment([store_call(place, call) for call in told], child)
    Environment.objects.filter(pk=child.pk).update(step=step)


def add_measured(environment: Environment, text: str = "") -> MeasuredTrial:
    """An attempt with a trajectory, a cast and what the verifier wrote."""
    call = {
        "tool_call_id": "1",
        "function_name": "run",
        "arguments": {"command": f"ls -la /app {text}"},
    }
    steps = [
        {"step_id": 1, "source": "user", "message": f"Do this task. {text}"},
        {
            "step_id": 2,
            "source": "agent",
            "message": f"I look around first. {text}",
            "reasoning_content": f"Where is the data? {text}",
            "tool_calls": [call],
            "observation": {"results": [{"source_call_id": "1", "content": f"data\nout\n{text}"}]},
            "metrics": {"prompt_tokens": 900, "completion_tokens": 40, "cost_usd": 0.0011},
        },
        {"step_id": 3, "source": "agent", "message": "It is done."},
    ]
    agent = {"name": "ratchet-terminal", "version": "1", "model_name": MODEL}
    trajectory = {"schema_version": "ATIF-v1.8", "agent": agent, "steps": steps}
    cast = [
        {"version": 2, "width": 80, "height": 24},
        [0.1, "o", f"$ ls\r\n\x1b[32mdata\x1b[0m out {text}\r\n"],
    ]
    attempt = Attempt(
        is_passed=True,
        counts=True,
        source=f"harbor nightly/{environment.pk}",
        reward=1.0,
        input_tokens=900,
        output_tokens=40,
        usd=0.0011,
        seconds=41.0,
        trajectory=json.dumps(trajectory).encode(),
        cast="\n".join(map(json.dumps, cast)).encode(),
        output=f"3 checks passed {text}".encode(),
    )
    solver = find_solver(f"terminus-2 {MODEL} {text}", SolverKind.HARBOR)
    name = measured_name(environment)
    row = record_attempt(solver, environment, name, next_number(solver, name), attempt)
    assert row is not None
    return row
