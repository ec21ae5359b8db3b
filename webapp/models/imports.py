"""Imports: what was found where, and what became of each, so that the count always adds up."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class ImportOutcome(models.TextChoices):
    """What became of something that was found."""

    IMPORTED = "imported"
    KNOWN = "known"
    """The same bundle is a seed already: from earlier, or from another place of this import."""
    REFUSED = "refused"


class Import(models.Model):
    """One import: of the paths in `sources`. Without `finished_at` it did not come to its end."""

    sources = models.JSONField(default=list)
    tags = models.JSONField(default=list, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"import {self.pk}"


class ImportEntry(models.Model):
    """One thing that was found: taken in as a seed, or refused with file and reason.

    `origin` says where it was. `notes` are lines on a bundle that was taken all the same.
    """

    batch = models.ForeignKey(Import, on_delete=models.PROTECT, related_name="entries")
    position = models.PositiveIntegerField()
    outcome = models.CharField(max_length=10, choices=ImportOutcome.choices)
    origin = models.TextField()
    file = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    notes = models.JSONField(default=list, blank=True)
    environment = models.ForeignKey(
        "Environment",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="import_entries",
    )

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["batch", "position"], name="import_entry_once"),
            models.CheckConstraint(
                condition=Q(outcome__in=ImportOutcome.values), name="import_entry_outcome_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome=ImportOutcome.REFUSED, environment__isnull=True)
                | (~Q(outcome=ImportOutcome.REFUSED) & Q(environment__isnull=False)),
                name="import_entry_seed_or_refused",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} {self.origin}"
