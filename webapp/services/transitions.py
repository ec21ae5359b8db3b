"""The one place where a status moves: a conditional UPDATE whose row count is checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import models, transaction

from webapp import lifecycle
from webapp.models import (
    Environment,
    Errand,
    EvolutionRun,
    EvolutionStep,
    User,
    Verification,
)
from webapp.services.errors import TransitionRefused
from webapp.services.events import append_event

_TABLES: dict[tuple[type[models.Model], str], lifecycle.Table] = {
    (Environment, "verification"): lifecycle.VERIFICATION,
    (Environment, "review"): lifecycle.REVIEW,
    (Errand, "status"): lifecycle.RUN,
    (EvolutionRun, "status"): lifecycle.RUN,
    (EvolutionStep, "status"): lifecycle.RUN,
    (Verification, "status"): lifecycle.TRIAL,
}


def move(
    row: models.Model,
    field: str,
    target: str,
    *,
    sources: Iterable[str] | None = None,
    where: dict[str, Any] | None = None,
    set_fields: dict[str, Any] | None = None,
    actor: User | None = None,
    reason: str = "",
    event: dict[str, Any] | None = None,
) -> None:
    """Move `row.field` to `target`, append the event, and refresh the row in memory.

    `sources` defaults to every status that the table lets become `target`; `where` adds
    conditions on the row's own columns (a lease's attempt): one that joins another table would
    move the status into a subquery, which two writers at once both see true. `set_fields` is what
    changes with it. Raises TransitionRefused
    when no row matched, and leaves everything as it was.
    """
    model = type(row)
    table = _TABLES[model, field]
    allowed = {source for source, targets in table.items() if target in targets}
    wanted = allowed if sources is None else allowed & set(sources)
    with transaction.atomic():
        before = getattr(row, field)
        changed = model._default_manager.filter(
            pk=row.pk, **{f"{field}__in": wanted}, **(where or {})
        ).update(**{field: target}, **(set_fields or {}))
        if changed == 0:
            raise TransitionRefused(
                f"{model._meta.verbose_name} {row.pk}: {field} cannot become {target} from "
                f"{before}; reload and look again"
            )
        append_event(
            f"{model._meta.model_name}.{field}",
            reason,
            source=before,
            target=target,
            actor=actor,
            **_subject(row),
            **(event or {}),
        )
    row.refresh_from_db()


def _subject(row: models.Model) -> dict[str, Any]:
    """Which event columns point at the row that moved."""
    if isinstance(row, Environment):
        return {"environment_id": row.pk, "run_id": row.run_id, "step_id": row.step_id}
    if isinstance(row, EvolutionStep):
        return {"step_id": row.pk, "run_id": row.run_id}
    if isinstance(row, EvolutionRun):
        return {"run_id": row.pk}
    if isinstance(row, Verification | Errand):
        return {"environment_id": row.environment_id}
    raise TypeError(f"no transitions for {type(row).__name__}")
