"""Events: the audit log, the timeline and the live feed in one; append-only."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class Event(models.Model):
    """Something happened: a transition (with `source` and `target`) or a note of the engine."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT
    )
    kind = models.CharField(max_length=60)
    text = models.TextField(blank=True)
    source = models.CharField(max_length=20, blank=True)
    target = models.CharField(max_length=20, blank=True)
    environment = models.ForeignKey(
        "Environment", null=True, blank=True, on_delete=models.PROTECT, related_name="events"
    )
    run = models.ForeignKey(
        "EvolutionRun", null=True, blank=True, on_delete=models.PROTECT, related_name="events"
    )
    step = models.ForeignKey(
        "EvolutionStep", null=True, blank=True, on_delete=models.PROTECT, related_name="events"
    )
    facts = models.JSONField(default=dict, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["run", "id"], name="event_run"),
            models.Index(fields=["environment", "id"], name="event_environment"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.text}"[:80]
