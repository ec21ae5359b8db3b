"""Which models are configured, with what was found when they were last tried."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from evolution.llm.calls import Role
from evolution.llm.endpoints import ModelConfigError, endpoint_of, model_label, parse_models
from webapp.models import Event

CHECKED = "models.checked"
"""The kind of the event in which the doctor leaves what it found."""


@dataclass(frozen=True, slots=True)
class RoleModel:
    """A role and the model that plays it; empty where none does."""

    role: str
    model: str
    endpoint: str
    options: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The table, the error that makes it empty, and when a doctor last looked."""

    rows: tuple[RoleModel, ...]
    error: str
    checked_at: datetime | None
    checked_by: str


def model_settings() -> ModelSettings:
    """What this process knows of the models, and what a doctor that holds the keys found."""
    checked = Event.objects.filter(kind=CHECKED).order_by("-id").first()
    facts: dict[str, Any] = checked.facts if checked is not None else {}
    found = facts.get("models") if isinstance(facts.get("models"), dict) else {}
    try:
        table = parse_models(settings.RATCHET_MODELS)
    except ModelConfigError as error:
        rows: tuple[RoleModel, ...] = ()
        said = str(error)
    else:
        specs = dict(table.entries)
        rows = tuple(_row(role, specs.get(role), found or {}) for role in Role)
        said = ""
    return ModelSettings(
        rows if any(row.model for row in rows) else (),
        said,
        checked.at if checked is not None else None,
        str(facts.get("host", "")),
    )


def _row(role: Role, spec: Any, found: dict[str, Any]) -> RoleModel:
    if spec is None:
        return RoleModel(role.value, "", "", "", "", "")
    label = model_label(spec)
    answer = found.get(label)
    level, text = answer if isinstance(answer, list) and len(answer) == 2 else ("", "")
    options = " ".join(f"{name}={value}" for name, value in spec.settings)
    return RoleModel(role.value, label, endpoint_of(spec), options, str(level), str(text))
