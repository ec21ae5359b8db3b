"""Recorded trajectories (ATIF) and terminal casts (asciinema), read to be shown.

Whoever wrote them is a stranger: what does not fit is left out, and nothing here fails.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from evolution.loose_json import CAP_BYTES, as_dict, as_list, parsed


@dataclass(frozen=True, slots=True)
class Action:
    """A tool's call with what it brought back."""

    tool: str
    arguments: str
    observation: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trajectory. Tokens and cost are None where they were not told."""

    number: int
    source: str
    message: str
    thought: str
    actions: tuple[Action, ...]
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Who acted, and its steps in order."""

    agent: str
    model: str
    steps: tuple[Step, ...]


def read_trajectory(data: bytes) -> Trajectory | None:
    """A trajectory in any version of ATIF; None for what is none."""
    body = parsed(data)
    if not isinstance(body, dict) or not isinstance(body.get("steps"), list):
        return None
    agent = as_dict(body.get("agent"))
    steps = [step for step in body["steps"] if isinstance(step, dict)]
    name = " ".join(str(agent[key]) for key in ("name", "version") if agent.get(key))
    return Trajectory(
        name,
        str(agent.get("model_name") or ""),
        tuple(_step(number, step) for number, step in enumerate(steps, 1)),
    )


def cast_text(data: bytes) -> str | None:
    """What a terminal showed, one after the other; None for what is no asciinema cast."""
    if len(data) > CAP_BYTES:
        return None
    lines = data.split(b"\n")
    header = parsed(lines[0])
    if not isinstance(header, dict) or header.get("version") not in (2, 3):
        return None
    shown = []
    for line in lines[1:]:
        event = parsed(line)
        if isinstance(event, list) and len(event) >= 3 and event[1] == "o":
            shown.append(str(event[2]))
    return "".join(shown)


def _step(number: int, step: dict[str, Any]) -> Step:
    metrics = as_dict(step.get("metrics"))
    results = _results(step)
    calls = [call for call in as_list(step.get("tool_calls")) if isinstance(call, dict)]
    actions = [
        Action(
            str(call.get("function_name") or ""),
            _text(call.get("arguments")),
            results.pop(str(call.get("tool_call_id") or f"#{index}"), ""),
        )
        for index, call in enumerate(calls)
    ]
    actions += [Action("", "", text) for text in results.values() if text]
    return Step(
        number=number,
        source=str(step.get("source") or ""),
        message=_text(step.get("message")),
        thought=_text(step.get("reasoning_content")),
        actions=tuple(actions),
        input_tokens=_count(metrics.get("prompt_tokens")),
        output_tokens=_count(metrics.get("completion_tokens")),
        usd=_amount(metrics.get("cost_usd")),
    )


def _results(step: dict[str, Any]) -> dict[str, str]:
    """What came back, by the id of its call; those without one by their place."""
    rows = as_list(as_dict(step.get("observation")).get("results"))
    found: dict[str, str] = {}
    for index, row in enumerate(rows):
        if isinstance(row, dict):
            key = str(row.get("source_call_id") or f"#{index}")
            found[key] = "\n".join(filter(None, (found.get(key), _text(row.get("content")))))
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(as_dict(part).get("text")) or "[no text]" for part in value)
    return json.dumps(value, ensure_ascii=False, indent=1)


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count else None


def _amount(value: Any) -> float | None:
    is_amount = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e8
    return float(value) if is_amount else None
