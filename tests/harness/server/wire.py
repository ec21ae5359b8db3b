"""Chat completions as values: what was asked, what is answered, and how that reads on the wire."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class BadAsk(Exception):
    """The request is no chat completion; says in one line why."""


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool. `arguments` are a string, so that they can be bad JSON, too."""

    name: str
    arguments: str

    @staticmethod
    def of(name: str, **arguments: Any) -> ToolCall:
        """A well-formed call."""
        return ToolCall(name, json.dumps(arguments, sort_keys=True, ensure_ascii=False))


@dataclass(frozen=True)
class Reply:
    """What a model says."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    refusal: str = ""
    finish: str = ""

    @property
    def finish_reason(self) -> str:
        """OpenAI's word for how the answer ended."""
        return self.finish or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True)
class Ask:
    """One chat completion that was asked for. Identifiers of tool calls play no part in it."""

    model: str
    messages: tuple[Json, ...]
    tools: Mapping[str, Json] = field(default_factory=dict)
    """The tools' parameters (JSON schemas) by name."""
    schema: Json | None = None
    """The schema that the text of the answer has to fit, where one was given."""
    must_call: bool = False
    is_streamed: bool = False
    wants_usage: bool = True

    @property
    def digest(self) -> str:
        """What the answer may depend on, as one value."""
        said = [_said(message) for message in self.messages]
        parts = [self.model, said, sorted(self.tools), self.schema, self.must_call]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def system(self) -> str:
        """What the system and the developer said."""
        return "\n".join(
            text_of(m) for m in self.messages if m.get("role") in ("system", "developer")
        )

    @property
    def text(self) -> str:
        """Everything that was said, results of tools included, in order."""
        return "\n".join(text_of(message) for message in self.messages)

    @property
    def results(self) -> tuple[tuple[ToolCall, str], ...]:
        """The tool calls made so far with what they gave, in order."""
        given = {
            m.get("tool_call_id"): text_of(m) for m in self.messages if m.get("role") == "tool"
        }
        made = []
        for message in self.messages:
            for call in message.get("tool_calls") or ():
                if call.get("id") in given:
                    function = call["function"]
                    made.append(
                        (ToolCall(function["name"], function["arguments"]), given[call["id"]])
                    )
        return tuple(made)


Script = Callable[[Ask], Reply]
"""A model: the same question, the same answer."""


def text_of(message: Json) -> str:
    """The text of a message, whose content may be a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


def _said(message: Json) -> list[Any]:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return [
        message.get("role"),
        text_of(message),
        [[call["name"], call["arguments"]] for call in calls],
    ]


def parse(body: bytes) -> Ask:
    """The question in a request's body. Raises BadAsk."""
    try:
        asked = json.loads(body)
    except ValueError:
        raise BadAsk("the body is no JSON") from None
    if not isinstance(asked, dict) or not asked.get("messages") or not asked.get("model"):
        raise BadAsk("a chat completion needs a model and messages")
    said = asked.get("response_format") or {}
    schema = (
        said.get("json_schema", {}).get("schema") if said.get("type") == "json_schema" else None
    )
    streamed = asked.get("stream") is True
    return Ask(
        model=asked["model"],
        messages=tuple(asked["messages"]),
        tools={
            tool["function"]["name"]: tool["function"].get("parameters", {})
            for tool in asked.get("tools") or ()
        },
        schema=schema,
        must_call=asked.get("tool_choice") == "required",
        is_streamed=streamed,
        wants_usage=not streamed or bool((asked.get("stream_options") or {}).get("include_usage")),
    )


def usage_of(ask: Ask, reply: Reply) -> Json:
    """Tokens, counted by a rule that anyone can repeat: four characters are one."""
    said = sum(len(text_of(m)) + len(json.dumps(m.get("tool_calls") or "")) for m in ask.messages)
    told = len(reply.text) + sum(len(call.name) + len(call.arguments) for call in reply.calls)
    prompt, completion = 1 + said // 4, 1 + told // 4
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def completion(ask: Ask, reply: Reply) -> Json:
    """The whole answer in one object."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.calls:
        message["tool_calls"] = [
            _call(ask, number, call) for number, call in enumerate(reply.calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    head = _head(ask, "chat.completion")
    return {**head, "choices": [choice], "usage": usage_of(ask, reply)}


def chunks(ask: Ask, reply: Reply, *, size: int = 4_000) -> Iterator[Json]:
    """The answer as a stream's objects, texts and arguments in pieces of at most `size`."""
    head = _head(ask, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    if reply.refusal:
        yield chunk({"refusal": reply.refusal})
    for at in range(0, len(reply.text), size):
        yield chunk({"content": reply.text[at : at + size]})
    for number, call in enumerate(reply.calls):
        begun = _call(ask, number, ToolCall(call.name, ""))
        yield chunk({"tool_calls": [{"index": number, **begun}]})
        for at in range(0, len(call.arguments), size):
            piece = {"arguments": call.arguments[at : at + size]}
            yield chunk({"tool_calls": [{"index": number, "function": piece}]})
    yield chunk({}, reply.finish_reason)
    if ask.wants_usage:
        yield {**head, "choices": [], "usage": usage_of(ask, reply)}


def _head(ask: Ask, kind: str) -> Json:
    name = f"chatcmpl-{ask.digest[:24]}"
    return {"id": name, "object": kind, "created": 1_750_000_000, "model": ask.model}


def _call(ask: Ask, number: int, call: ToolCall) -> Json:
    name = f"call_{ask.digest[:16]}_{number}"
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": name, "type": "function", "function": function}
