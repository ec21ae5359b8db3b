"""What a person asks for about one environment, beside runs: a solution, a diagnosis, hardening.

The first two ask a model; to harden the verifier asks none and takes no budget.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from webapp.lifecycle import RunStatus


class ErrandKind(models.TextChoices):
    """What is asked."""

    SOLVE = "solve", "write a reference solution"
    TRIAGE = "triage", "say why nobody passes"
    HARDEN = "harden", "harden the verifier"

    @property
    def asks_a_model(self) -> bool:
        """Whether it takes a budget."""
        return self is not ErrandKind.HARDEN


class Errand(models.Model):
    """One request, which a worker carries out; its row is the request, and then the answer.

    `answer` is the role's own ({kind, quote, reason} of a triage), `child` what a solution led to,
    `said` one line on what came of it. `number` counts those of a kind that came to an end: what
    was broken off goes on under the same number, where its calls are remembered.
    """

    environment = models.ForeignKey("Environment", on_delete=models.PROTECT, related_name="errands")
    kind = models.CharField(max_length=10, choices=ErrandKind.choices)
    number = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    budget_usd = models.FloatField(null=True, blank=True)
    budget_tokens = models.BigIntegerField(null=True, blank=True)
    budget_seconds = models.FloatField(null=True, blank=True)
    answer = models.JSONField(default=dict, blank=True)
    child = models.ForeignKey(
        "Environment", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    said = models.TextField(blank=True)
    attempt = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["environment", "kind"],
                condition=Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]),
                name="errand_open_once",
            ),
            models.CheckConstraint(
                condition=Q(status__in=RunStatus.values), name="errand_status_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ErrandKind.values), name="errand_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of environment {self.environment_id}"

    @property
    def is_open(self) -> bool:
        """Whether somebody works on it, or will."""
        return self.status in (RunStatus.QUEUED, RunStatus.RUNNING)
