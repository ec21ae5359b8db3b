"""Evolution runs and their steps. A step's row is the request for its work."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from evolution.contracts import StepEnd
from webapp.lifecycle import PauseReason, RunStatus
from webapp.models.environment import Lineage


class EvolutionRun(models.Model):
    """One evolution campaign over some lineages.

    `generations` counts the evolved ones; `children` is the number of steps per lineage and
    generation. Equal configuration and seed give equal digests.
    """

    name = models.CharField(max_length=200)
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    author = models.CharField(max_length=20, default="procedural")
    seed = models.BigIntegerField(default=0)
    generations = models.PositiveSmallIntegerField(default=3)
    children = models.PositiveSmallIntegerField(default=2)
    directions = models.JSONField(default=list, blank=True)
    effort = models.CharField(max_length=4, default="low")
    lineages: models.ManyToManyField[Lineage, models.Model] = models.ManyToManyField(
        Lineage, related_name="runs"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    error = models.TextField(blank=True)
    budget_usd = models.FloatField(null=True, blank=True)
    budget_tokens = models.BigIntegerField(null=True, blank=True)
    budget_seconds = models.FloatField(null=True, blank=True)
    """What the run's calls to models may take together; None: no limit of that kind."""

    step_usd = models.FloatField(null=True, blank=True)
    step_tokens = models.BigIntegerField(null=True, blank=True)
    step_seconds = models.FloatField(null=True, blank=True)
    """What the calls of a single step may take; a step that needs more ends without a child."""

    pause_reason = models.CharField(
        max_length=10, blank=True, choices=[(p.value, p.value) for p in PauseReason]
    )
    """Why it rests, where no person paused it; `error` says more."""

    replay_of = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="replays"
    )
    """The run whose stored answers take the place of models."""

    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status__in=RunStatus.values), name="run_status_known"
            ),
            models.CheckConstraint(
                condition=Q(generations__gte=1, generations__lte=50), name="run_generations_sane"
            ),
            models.CheckConstraint(
                condition=Q(children__gte=1, children__lte=4), name="run_children_sane"
            ),
            models.CheckConstraint(
                condition=(Q(budget_usd__isnull=True) | Q(budget_usd__gte=0, budget_usd__lt=1e9))
                & (Q(budget_tokens__isnull=True) | Q(budget_tokens__gte=0))
                & (
                    Q(budget_seconds__isnull=True)
                    | Q(budget_seconds__gte=0, budget_seconds__lt=1e9)
                ),
                name="run_budget_sane",
            ),
            models.CheckConstraint(
                condition=(Q(step_usd__isnull=True) | Q(step_usd__gte=0, step_usd__lt=1e9))
                & (Q(step_tokens__isnull=True) | Q(step_tokens__gte=0))
                & (Q(step_seconds__isnull=True) | Q(step_seconds__gte=0, step_seconds__lt=1e9)),
                name="run_step_budget_sane",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class EvolutionStep(models.Model):
    """One attempt to get one child from one parent."""

    run = models.ForeignKey(EvolutionRun, on_delete=models.PROTECT, related_name="steps")
    lineage = models.ForeignKey("Lineage", on_delete=models.PROTECT, related_name="steps")
    parent = models.ForeignKey("Environment", on_delete=models.PROTECT, related_name="steps")
    generation = models.PositiveSmallIntegerField()
    ordinal = models.PositiveSmallIntegerField()
    seed = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=RunStatus.choices, default=RunStatus.QUEUED)
    end = models.CharField(max_length=14, blank=True, choices=[(e.value, e.value) for e in StepEnd])
    child = models.ForeignKey(
        "Environment", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    attempt = models.PositiveIntegerField(default=0)
    excused = models.PositiveIntegerField(default=0)
    """Attempts that ended for want of a model or of budget, which is no fault of the step."""

    lease_expires_at = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    refusals = models.JSONField(default=list)
    error = models.TextField(blank=True)
    seconds = models.FloatField(default=0.0)
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "lineage", "generation", "ordinal"], name="step_once"
            ),
            models.CheckConstraint(
                condition=Q(status__in=RunStatus.values), name="step_status_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["status", "lease_expires_at"],
                condition=Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]),
                name="step_open",
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.generation}.{self.ordinal} of run {self.run_id}"
