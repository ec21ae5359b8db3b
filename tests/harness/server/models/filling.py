"""Values that fit a JSON schema: what a model says that only keeps to the form."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def fitting(schema: Json, told: Json | None = None) -> Any:
    """A value of this schema: `told` where it names a property, else the least that fits."""
    return _value(schema, schema.get("$defs", {}), told or {})


def _value(schema: Json, shared: Json, told: Json) -> Any:
    if "$ref" in schema:
        return _value(shared[schema["$ref"].rpartition("/")[2]], shared, told)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _value(schema[key][0], shared, told)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            needed = {*schema.get("required", ()), *(told.keys() & schema.get("properties", {}))}
            return {
                name: told[name] if name in told else _value(one, shared, {})
                for name, one in schema.get("properties", {}).items()
                if name in needed
            }
        case "array":
            return [_value(schema["items"], shared, {})] * schema.get("minItems", 0)
        case "integer" | "number":
            return max(0, schema.get("minimum", 0))
        case "boolean":
            return False
        case "null":
            return None
    return "x" * schema.get("minLength", 0)
