"""Requests and answers as bytes that are the same whenever they mean the same.

What changes from run to run without meaning anything (time stamps, run ids, the ids that tie a
tool's result to its call, what a provider tells about itself) never enters a request's bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from evolution.llm.calls import CallFailed, CallOutcome, CallRecord

_HALVES = re.compile("[\ud800-\udfff]")
_MESSAGE_FIELDS = ("kind", "instructions", "parts")
_UNMEANT = frozenset(
    {
        "timestamp",
        "metadata",
        "dynamic_ref",
        "context_id",
        "id",
        "provider_name",
        "provider_details",
        "signature",
    }
)


def request_bytes(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> bytes:
    """A request as canonical JSON: what is said, what may be called, how it must be answered.

    Which model is asked, and with which settings, is not in it: a run whose operator changes them
    goes on, and repeats nothing.
    """
    ids: dict[str, str] = {}
    said = [
        _message(message, ids)
        for message in ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    ]
    request: dict[str, Any] = {
        "messages": said,
        "tools": [_tool(tool) for tool in parameters.function_tools],
        "output": {
            "mode": parameters.output_mode,
            "tools": [_tool(tool) for tool in parameters.output_tools],
            "schema": parameters.output_object.json_schema if parameters.output_object else None,
            "allows_text": parameters.allow_text_output,
        },
    }
    return canonical(request)


def response_bytes(response: ModelResponse, redact: Callable[[str], str]) -> bytes:
    """An answer as JSON that `response_of` reads back, without any key.

    Halves of characters, which JSON can name but nobody can send on, become replacement characters.
    """
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    return redact(canonical(_whole(dumped)).decode()).encode()


def response_of(data: bytes) -> ModelResponse:
    """The answer that `response_bytes` wrote."""
    (message,) = ModelMessagesTypeAdapter.validate_python([json.loads(data)])
    if not isinstance(message, ModelResponse):
        raise TypeError("the recorded bytes are no answer of a model")
    return message


def answer_in(known: CallRecord) -> ModelResponse:
    """The answer in the record that ended a call; CallFailed where that is none."""
    if known.outcome in {CallOutcome.CONTEXT_OVERFLOW, CallOutcome.TOO_LARGE}:
        raise CallFailed(known.outcome, known.reason)
    return response_of(known.response)


def call_key(place: str, request: bytes) -> str:
    """The name of a call: the same request at the same place is the same call."""
    return hashlib.sha256(place.encode() + b"\0" + request).hexdigest()


def canonical(value: object) -> bytes:
    """JSON with sorted keys in ASCII: no byte in it needs care anywhere."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def _whole(value: Any) -> Any:
    """The value without lone surrogates."""
    match value:
        case str():
            return _HALVES.sub("\ufffd", value)
        case list():
            return [_whole(inner) for inner in value]
        case dict():
            return {_whole(name): _whole(inner) for name, inner in value.items()}
    return value


def _message(message: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    kept = {name: message[name] for name in _MESSAGE_FIELDS if message.get(name) is not None}
    kept["parts"] = [_part(part, ids) for part in message["parts"]]
    return kept


def _part(part: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    kept = {
        name: value for name, value in part.items() if name not in _UNMEANT and value is not None
    }
    call = kept.get("tool_call_id")
    if call is not None:
        kept["tool_call_id"] = ids.setdefault(call, f"call-{len(ids) + 1}")
    return kept


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters_json_schema,
    }
