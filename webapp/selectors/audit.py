"""The audit list: every event, newest first."""

from __future__ import annotations

from django.db.models import Q

from webapp.models import Event

PAGE_ROWS = 100


def audit_rows(*, kind: str = "", actor: str = "", before: int | None = None) -> list[Event]:
    """A page of events older than `before`, of this kind (or family) and actor's name."""
    rows = Event.objects.select_related("actor", "step__lineage")
    if kind:
        rows = rows.filter(Q(kind=kind) | Q(kind__startswith=f"{kind}."))
    if actor:
        rows = rows.filter(actor__username=actor)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return list(rows.order_by("-id")[: PAGE_ROWS + 1])
