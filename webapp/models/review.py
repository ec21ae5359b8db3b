"""Reviews: append-only decisions of people on one digest."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q


class ReviewVerdict(models.TextChoices):
    """What a person said; `undone` takes an earlier decision back."""

    APPROVED = "approved"
    REJECTED = "rejected"
    CHANGES_REQUESTED = "changes_requested", "Changes requested"
    UNDONE = "undone"


REASONS: dict[str, dict[str, str]] = {
    "instruction": {
        "instruction.ambiguous": "Ambiguous",
        "instruction.unstated": "Checks unstated behaviour",
        "instruction.path": "Output path not named",
    },
    "tests": {
        "tests.weak": "Behaviour untested",
        "tests.strict": "Too strict",
        "tests.flaky": "Flaky",
    },
    "integrity": {
        "integrity.leak": "Leaks the answer",
        "integrity.cheatable": "Cheatable",
        "integrity.hardcoded": "Hard-coded solution",
    },
    "environment": {
        "environment.build": "Build problem",
        "environment.unpinned": "Unpinned",
        "environment.network": "Needs the network",
    },
    "difficulty": {
        "difficulty.easy": "Too easy",
        "difficulty.impossible": "Impossible",
        "difficulty.tedious": "Tedious, not hard",
        "difficulty.direction": "Direction not met",
    },
    "novelty": {
        "novelty.duplicate": "Near-duplicate",
        "novelty.trivial": "Trivial change",
    },
    "safety": {"safety.unsafe": "Unsafe"},
    "other": {"other": "Other (say so in the comment)"},
}
"""The taxonomy of reasons by group, in the words of Harbor's quality rubric."""

REASON_LABELS: dict[str, str] = {
    code: label for group in REASONS.values() for code, label in group.items()
}


class Review(models.Model):
    """One decision, never edited. `undoes` names the decision that an `undone` takes back."""

    environment = models.ForeignKey("Environment", on_delete=models.PROTECT, related_name="reviews")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="reviews"
    )
    verdict = models.CharField(max_length=20, choices=ReviewVerdict.choices)
    digest = models.CharField(max_length=64)
    reasons = models.JSONField(default=list, blank=True)
    comment = models.TextField(blank=True)
    undoes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="undone_by"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(verdict=ReviewVerdict.UNDONE, undoes__isnull=False)
                | (~Q(verdict=ReviewVerdict.UNDONE) & Q(undoes__isnull=True)),
                name="review_undone_names_its_target",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.reviewer_id}"


class ReviewLease(models.Model):
    """Who is looking at an environment right now, and until when."""

    environment = models.OneToOneField(
        "Environment", on_delete=models.CASCADE, related_name="review_lease"
    )
    holder = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.environment_id} held by {self.holder_id}"
