"""Events are appended, never changed."""

from __future__ import annotations

from typing import Any

from webapp.models import Event


def append_event(kind: str, text: str = "", **fields: Any) -> Event:
    """Append one event; `fields` are those of `Event` (actor, environment, run, facts …)."""
    return Event.objects.create(kind=kind, text=text, **fields)
