"""Whether an answer has the form that was asked for, said on the record of the call.

The agents find out for themselves, and tell the model; this is for people who read what happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters

from evolution.language import is_foreign
from evolution.plain_text import plain

Schema = Mapping[str, Any]


def out_of_form(parameters: ModelRequestParameters, response: ModelResponse) -> str:
    """What is wrong with the form of an answer, in one line; empty when nothing is."""
    tools: dict[str, Schema] = {
        tool.name: tool.parameters_json_schema
        for tool in (*parameters.function_tools, *parameters.output_tools)
    }
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    for call in calls:
        if said := _misfit_of(call, tools):
            return said
    if calls or parameters.allow_text_output:
        return ""
    text = "\n".join(part.content for part in response.parts if isinstance(part, TextPart))
    if is_foreign(text):
        return "an answer in another language, as prose"
    return "an answer in prose, where a tool has to be called"


def _misfit_of(call: ToolCallPart, tools: Mapping[str, Schema]) -> str:
    name = plain(call.tool_name)[:80]
    if call.tool_name not in tools:
        return f"a call of a tool that does not exist: {name}"
    value: Any = call.args or {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return f"arguments that are no JSON, in its call of {name}"
    schema = tools[call.tool_name]
    wrong = next(_misfits(schema, value, schema), "")
    if wrong:
        return f"an object of another shape than asked for, in its call of {name}: {wrong}"
    return ""


def _misfits(schema: Schema, value: Any, whole: Schema, at: str = "") -> Iterator[str]:
    """Where a value has another shape than the schema: fields missing, unknown, or no object.

    Numbers and texts are left alone: what is read as which is the reader's to say.
    """
    if reference := schema.get("$ref"):
        name = str(reference).rpartition("/")[2]
        yield from _misfits(whole.get("$defs", {}).get(name, {}), value, whole, at)
        return
    if choices := schema.get("anyOf"):
        found = [next(_misfits(one, value, whole, at), "") for one in choices]
        if all(found):
            yield found[0]
        return
    shown = plain(at) or "the whole"
    kind = schema.get("type")
    if kind == "object" and not isinstance(value, dict):
        yield f"{shown} is no object"
    elif kind == "array" and not isinstance(value, list):
        yield f"{shown} is no list"
    elif isinstance(value, dict) and kind == "object":
        yield from _misfits_in(schema, value, whole, at)
    elif isinstance(value, list) and kind == "array":
        for index, one in enumerate(value[:100]):
            yield from _misfits(schema.get("items", {}), one, whole, f"{at}[{index}]")


def _misfits_in(schema: Schema, value: dict[str, Any], whole: Schema, at: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{plain(f'{at}.{name}'.lstrip('.'))[:80]} is missing"
    for name, inner in value.items():
        below = f"{at}.{name}".lstrip(".")
        if name in known:
            yield from _misfits(known[name], inner, whole, below)
        elif schema.get("additionalProperties") is False:
            yield f"{plain(below)[:80]} was not asked for"
