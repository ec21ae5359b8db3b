"""Recorded calls as something to read: who said what, in the order in which it was said.

A request holds the whole conversation so far, as pydantic-ai writes it; told is only what was new
in it. What is not in that form is told as it is: nothing here fails on what a server sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evolution.loose_json import parsed


class Speaker(StrEnum):
    """Who speaks. `harness` is what the loop itself says: an answer was malformed, try again."""

    SYSTEM = "system"
    USER = "user"
    MODEL = "model"
    TOOL = "tool"
    HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class Utterance:
    """One part of a message. `tool` names the tool that is called, or that answers.

    `is_thought` marks what a model said to itself.
    """

    speaker: Speaker
    text: str
    tool: str = ""
    is_call: bool = False
    is_thought: bool = False


_SPEAKERS = {
    "system-prompt": Speaker.SYSTEM,
    "user-prompt": Speaker.USER,
    "tool-return": Speaker.TOOL,
    "builtin-tool-return": Speaker.TOOL,
    "retry-prompt": Speaker.HARNESS,
    "text": Speaker.MODEL,
    "thinking": Speaker.MODEL,
    "tool-call": Speaker.MODEL,
    "builtin-tool-call": Speaker.MODEL,
}


def new_in_request(request: bytes) -> tuple[Utterance, ...]:
    """What a request says that the turns before it did not."""
    body = parsed(request)
    if body is None:
        return _as_text(request, Speaker.USER)
    messages = _messages(body)
    answers = [i for i, message in enumerate(messages) if message.get("kind") == "response"]
    fresh = messages[answers[-1] + 1 :] if answers else messages
    told = [part for message in fresh for part in _parts(message)]
    if not answers:
        told = [*_instructions(body, messages), *told]
    return tuple(told)


def answer_of(response: bytes) -> tuple[Utterance, ...]:
    """What the model answered; raw text where it was no message."""
    body = parsed(response)
    messages = [] if body is None else _messages(body)
    told = [part for message in messages for part in _parts(message)]
    return tuple(told) if told else _as_text(response, Speaker.MODEL)


def _as_text(data: bytes, speaker: Speaker) -> tuple[Utterance, ...]:
    text = data.decode("utf-8", "replace")
    return (Utterance(speaker, text),) if text.strip() else ()


def _messages(body: Any) -> list[dict[str, Any]]:
    """The messages of a body: a list, one message, or an object that holds them."""
    if isinstance(body, dict):
        for name in ("messages", "message", "response"):
            if name in body:
                return _messages(body[name])
        return [body] if "parts" in body else []
    return [row for row in body if isinstance(row, dict)] if isinstance(body, list) else []


def _instructions(body: Any, messages: list[dict[str, Any]]) -> list[Utterance]:
    """The role's prompt, where it stands beside the messages."""
    holders = [body, *messages] if isinstance(body, dict) else messages
    for holder in holders:
        text = holder.get("instructions")
        if isinstance(text, str) and text:
            return [Utterance(Speaker.SYSTEM, text)]
    return []


def _parts(message: dict[str, Any]) -> list[Utterance]:
    parts = message.get("parts")
    if not isinstance(parts, list):
        return []
    return [_utterance(part) for part in parts if isinstance(part, dict)]


def _utterance(part: dict[str, Any]) -> Utterance:
    kind = str(part.get("part_kind", ""))
    is_call = kind in ("tool-call", "builtin-tool-call")
    value = part.get("args") if is_call else part.get("content")
    return Utterance(
        speaker=_SPEAKERS.get(kind, Speaker.USER),
        text=_text(value),
        tool=str(part.get("tool_name") or ""),
        is_call=is_call,
        is_thought=kind == "thinking",
    )


def _text(value: Any) -> str:
    """A part's content as text; arguments of a tool as the JSON that they are."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _opened(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False, indent=1)


def _opened(text: str) -> str:
    """Arguments that came as a string of JSON, spread over lines to be read."""
    value = parsed(text) if text.startswith("{") else None
    return json.dumps(value, ensure_ascii=False, indent=1) if isinstance(value, dict) else text
