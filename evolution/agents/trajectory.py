"""What a solver did, for others to read: an ATIF trajectory and an asciinema cast."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

ATIF = "ATIF-v1.8"
COLUMNS, ROWS = 120, 40
CAST_CHARACTERS = 2_000_000
"""The most that a cast holds, in characters; what comes later is left out with a mark."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A command of the solver with what it was shown. `call_id` is the model's own."""

    call_id: str
    command: str
    text: str
    seconds: float


@dataclass
class Story:
    """What happened, in order: the model's answers, and what the commands gave."""

    task: str
    responses: list[ModelResponse] = field(default_factory=list)
    observed: list[Observed] = field(default_factory=list)

    @property
    def input_tokens(self) -> int:
        """Tokens that were read, over all requests."""
        return sum(one.usage.input_tokens or 0 for one in self.responses)

    @property
    def output_tokens(self) -> int:
        """Tokens that were written, over all answers."""
        return sum(one.usage.output_tokens or 0 for one in self.responses)


def atif(story: Story, *, agent: str, version: str, model: str) -> dict[str, object]:
    """The trajectory in ATIF v1.8. It holds no times and no ids by chance."""
    results = {one.call_id: one for one in story.observed}
    steps: list[dict[str, object]] = [{"step_id": 1, "source": "user", "message": story.task}]
    count = 0
    for response in story.responses:
        step: dict[str, object] = {
            "step_id": len(steps) + 1,
            "source": "agent",
            "message": _joined(part.content for part in response.parts if type(part) is TextPart),
            "llm_call_count": 1,
            "metrics": {
                "prompt_tokens": response.usage.input_tokens or 0,
                "completion_tokens": response.usage.output_tokens or 0,
                "cached_tokens": response.usage.cache_read_tokens or 0,
            },
        }
        thought = _joined(part.content for part in response.parts if isinstance(part, ThinkingPart))
        if thought:
            step["reasoning_content"] = thought
        calls: list[dict[str, object]] = []
        seen: list[dict[str, object]] = []
        for part in response.parts:
            if not isinstance(part, ToolCallPart):
                continue
            count += 1
            name = f"call-{count}"
            calls.append(
                {
                    "tool_call_id": name,
                    "function_name": part.tool_name,
                    "arguments": part.args_as_dict(),
                }
            )
            result = results.get(part.tool_call_id)
            if result is not None:
                seen.append({"source_call_id": name, "content": result.text})
        if calls:
            step["tool_calls"] = calls
        if seen:
            step["observation"] = {"results": seen}
        steps.append(step)
    return {
        "schema_version": ATIF,
        "agent": {"name": agent, "version": version, "model_name": model},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": story.input_tokens,
            "total_completion_tokens": story.output_tokens,
            "total_steps": len(steps),
        },
    }


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def cast(story: Story) -> bytes:
    """The commands and what they showed as an asciinema recording, version 2.

    Its times are the seconds that commands took; a model's thinking takes none.
    """
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "solver"}
    lines = [json.dumps(header)]
    at, room = 0.0, CAST_CHARACTERS
    for one in story.observed:
        for text, seconds in ((f"$ {one.command}", 0.0), (one.text, one.seconds)):
            at += seconds
            if len(text) > room:
                lines.append(json.dumps([round(at, 3), "o", "(the rest is left out)\r\n"]))
                return "\n".join(lines).encode() + b"\n"
            room -= len(text)
            lines.append(json.dumps([round(at, 3), "o", text.replace("\n", "\r\n") + "\r\n"]))
    return "\n".join(lines).encode() + b"\n"
