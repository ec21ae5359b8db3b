"""Statuses, and which may follow which. Pure data; `services.transitions` alone moves them."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import TextChoices


class TrialStatus(TextChoices):
    """A trial's life."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    ERRORED = "errored"
    CANCELLED = "cancelled"


class VerificationStatus(TextChoices):
    """What the gates say of an environment."""

    PENDING = "pending"
    VERIFYING = "verifying"
    VALID = "valid"
    INVALID = "invalid"
    ERRORED = "errored"


class ReviewStatus(TextChoices):
    """What people say of an environment."""

    UNREVIEWED = "unreviewed"
    APPROVED = "approved"
    REJECTED = "rejected"
    CHANGES_REQUESTED = "changes_requested", "Changes requested"


class RunStatus(TextChoices):
    """An evolution run's life; steps use the same words."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PauseReason(TextChoices):
    """Why a run rests that nobody paused."""

    BUDGET = "budget"
    MODEL = "model"


Table = Mapping[str, frozenset[str]]


def _table(**rows: str) -> Table:
    return {source: frozenset(targets.split()) for source, targets in rows.items()}


TRIAL: Table = _table(
    queued="running cancelled",
    running="queued completed errored cancelled",
    completed="",
    errored="",
    cancelled="",
)
VERIFICATION: Table = _table(
    pending="verifying",
    verifying="valid invalid errored pending",
    errored="pending verifying",
    valid="invalid",
    invalid="valid",
)
REVIEW: Table = _table(
    unreviewed="approved rejected changes_requested",
    approved="unreviewed rejected changes_requested",
    rejected="unreviewed approved changes_requested",
    changes_requested="unreviewed approved rejected",
)
RUN: Table = _table(
    queued="running cancelled failed",
    running="paused completed failed cancelled queued",
    paused="running cancelled",
    completed="",
    failed="queued",
    cancelled="",
)
