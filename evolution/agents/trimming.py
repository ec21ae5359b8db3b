"""Bounded context: what is shown to a model is cut with a mark, never without one.

Text that came from elsewhere is quoted between marks that carry a digest of it, so that nothing in
it can end the quotation; what nobody sees (escapes, invisible characters) is spelt out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
LINE_CHARACTERS = 2000
DROPPED = "(an earlier result of this tool; left out to save room, ask again if you need it)"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that is shown at once, in characters: of one request, one result, one file, a list.

    Four characters are about one token; the defaults fit models with 64,000 tokens of context.
    """

    request: int = 160_000
    result: int = 8_000
    file: int = 12_000
    brief: int = 60_000
    listing: int = 4_000


def cut_middle(text: str, most: int) -> str:
    """Text of at most about `most` characters: beginning and end, with a mark that counts the gap.

    Two thirds are the end for what is cut: errors and results come last.
    """
    if len(text) <= most:
        return text
    head = most // 3
    tail = most - head
    gone = len(text) - head - tail
    return f"{text[:head]}\n[… {gone:,} characters left out …]\n{text[-tail:]}"


def readable(data: bytes | str) -> str:
    """Bytes as text that hides nothing: no escapes, invisible characters spelt, lines bounded."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    text = _UNSEEN.sub(lambda match: repr(match[0])[1:-1], text)
    return "\n".join(cut_middle(line, LINE_CHARACTERS) for line in text.split("\n"))


def quoted(name: str, text: bytes | str, most: int) -> str:
    """Foreign text between marks that it cannot forge: they carry a digest of all of it."""
    shown = cut_middle(readable(text), most)
    tag = hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:8]
    label = readable(name).replace("\n", " ").replace("]", ")")[:200]
    return f"[data {label} #{tag}]\n{shown}\n[end of data #{tag}]"


def size_of(messages: Iterable[ModelMessage]) -> int:
    """How many characters these messages come to, roughly as they are sent."""
    return sum(_size(part) for message in messages for part in message.parts)


def _size(part: object) -> int:
    if isinstance(part, ToolCallPart):
        return len(part.args_as_json_str()) + len(part.tool_name)
    if isinstance(part, ToolReturnPart):
        return len(part.model_response_str())
    content = getattr(part, "content", "")
    return len(content) if isinstance(content, str) else len(str(content))


def bounded(messages: list[ModelMessage], most: int) -> list[ModelMessage]:
    """These messages within `most` characters, as far as that can be done.

    Oldest first: results of tools give way to a mark, then the long arguments of calls and the
    thinking, then the middle of long texts. The last exchange is cut last. Goes down to three
    quarters at once, so that the beginning stays the same for a while and can be cached.
    """
    if size_of(messages) <= most:
        return messages
    target = most * 3 // 4
    found = list(messages)
    for lossy in (_without_results, _without_arguments):
        for at in range(len(found) - 2):
            if size_of(found) <= target:
                return found
            found[at] = lossy(found[at])
    left = size_of(found)
    if left <= most:
        return found
    share = most / left
    return [_cut_parts(message, share) for message in found]


def _without_results(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts: list[ModelRequestPart] = [
        _changed(part, content=DROPPED)
        if isinstance(part, ToolReturnPart) and len(part.model_response_str()) > len(DROPPED)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _without_arguments(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelResponse):
        return message
    parts = [
        _changed(part, args={key: _short(value) for key, value in part.args_as_dict().items()})
        if isinstance(part, ToolCallPart)
        else part
        for part in message.parts
        if not isinstance(part, ThinkingPart)
    ]
    return replace(message, parts=parts)


def _changed(part: Any, **changes: object) -> Any:
    """`replace` for parts of several types with one name."""
    return replace(part, **changes)


def _short(value: object) -> object:
    return cut_middle(value, 300) if isinstance(value, str) else value


def _cut_parts(message: ModelMessage, share: float) -> ModelMessage:
    """Every long text cut to its share."""
    if isinstance(message, ModelRequest):
        asked: list[ModelRequestPart] = []
        for part in message.parts:
            if isinstance(part, UserPromptPart | ToolReturnPart) and isinstance(part.content, str):
                asked.append(_changed(part, content=_share_of(part.content, share)))
            else:
                asked.append(part)
        return replace(message, parts=asked)
    said: list[ModelResponsePart] = [
        replace(part, content=_share_of(part.content, share))
        if isinstance(part, TextPart)
        else part
        for part in message.parts
    ]
    return replace(message, parts=said)


def _share_of(text: str, share: float) -> str:
    return cut_middle(text, max(500, int(len(text) * share * 0.9)))
