"""What all scripted models share: who is asked, and how an answer is handed over."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.harness.server.models.filling import fitting
from tests.harness.server.wire import Ask, Reply, ToolCall

FINISH = "finish"
_ROLE = re.compile(r"(?m)^# Your (?:role|task): (.+)$")
_DATA = re.compile(r"\[data (.*?) #([0-9a-f]{8})\]\n(.*?)\n?\[end of data #\2\]", re.DOTALL)


def role_of(ask: Ask) -> str:
    """Which role the model is to play, in the words of its instructions."""
    found = _ROLE.search(ask.system) or _ROLE.search(ask.text)
    return found[1].strip().lower() if found else ""


def data(text: str) -> dict[str, str]:
    """What was quoted as data, by its label; the last one counts."""
    return {label: content for label, _, content in _DATA.findall(text)}


def answer(ask: Ask, **told: Any) -> Reply:
    """Hand over an answer in the form that was asked for; what is not told is left at its least."""
    if ask.schema is not None:
        return Reply(text=json.dumps(fitting(ask.schema, told), ensure_ascii=False))
    if FINISH in ask.tools:
        value = fitting(ask.tools[FINISH], told)
        return Reply(calls=(ToolCall(FINISH, json.dumps(value, ensure_ascii=False)),))
    return Reply(text=str(told.get("text", "Done.")))


def call(ask: Ask, name: str, **told: Any) -> ToolCall:
    """A call of a tool that is there."""
    return ToolCall(name, json.dumps(fitting(ask.tools[name], told), ensure_ascii=False))
