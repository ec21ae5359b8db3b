"""JSON that strangers wrote: what does not fit is as if it were not there, and nothing fails."""

from __future__ import annotations

import json
from typing import Any

CAP_BYTES = 32 << 20
"""What is larger is not parsed."""


def parsed(text: bytes | str) -> Any:
    """The value, or None for what is no JSON, too large, or nested beyond reading."""
    if len(text) > CAP_BYTES:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
