"""The review queue: what waits, who holds it, what I decided last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from webapp.lifecycle import ReviewStatus, VerificationStatus
from webapp.models import Environment, Review, ReviewLease, ReviewVerdict, User
from webapp.selectors.environments import LIST_FIELDS

QUEUE_ROWS = 50
NEXT_ROWS = 10


@dataclass(frozen=True, slots=True)
class QueueRow:
    """An environment that waits, with the name of who holds it (empty: nobody)."""

    environment: Environment
    holder: str
    is_mine: bool
    until: datetime | None


def waiting_for_review() -> QuerySet[Environment]:
    """Valid evolved environments that nobody has decided on."""
    return Environment.objects.filter(
        verification=VerificationStatus.VALID,
        review=ReviewStatus.UNREVIEWED,
        parent__isnull=False,
    )


def free_for(user: User) -> Q:
    """The condition that nobody else holds an environment right now."""
    return (
        Q(review_lease=None)
        | Q(review_lease__expires_at__lt=timezone.now())
        | Q(review_lease__holder=user)
    )


def count_waiting() -> int:
    """How many environments wait for a decision."""
    return waiting_for_review().count()


def queue_rows(
    user: User, *, skip: Sequence[int] = (), limit: int = QUEUE_ROWS, free_only: bool = False
) -> list[QueueRow]:
    """What waits, oldest first, without what this person skipped; optionally only what is free."""
    rows = waiting_for_review().exclude(pk__in=list(skip))
    if free_only:
        rows = rows.filter(free_for(user))
    now = timezone.now()
    fields = (*LIST_FIELDS, "review_lease__expires_at", "review_lease__holder__username")
    shown = rows.select_related("review_lease__holder").only(*fields).order_by("pk")[:limit]
    return [_row(environment, user, now) for environment in shown]


def _row(environment: Environment, user: User, now: datetime) -> QueueRow:
    lease: ReviewLease | None = getattr(environment, "review_lease", None)
    if lease is None or lease.expires_at < now:
        return QueueRow(environment, "", False, None)
    return QueueRow(
        environment, lease.holder.get_username(), lease.holder_id == user.pk, lease.expires_at
    )


def current_lease(environment: Environment) -> ReviewLease | None:
    """The lease on an environment that has not run out."""
    return (
        ReviewLease.objects.filter(environment=environment, expires_at__gte=timezone.now())
        .select_related("holder")
        .first()
    )


def last_decision(user: User) -> Review | None:
    """This person's newest decision that still stands."""
    return (
        Review.objects.filter(reviewer=user, undone_by__isnull=True)
        .exclude(verdict=ReviewVerdict.UNDONE)
        .select_related("environment")
        .defer("environment__manifest", "environment__demands", "environment__sequence")
        .order_by("-id")
        .first()
    )


def standing_review(environment: Environment) -> Review | None:
    """The newest decision about an environment that was not taken back."""
    return (
        Review.objects.filter(environment=environment, undone_by__isnull=True)
        .exclude(verdict=ReviewVerdict.UNDONE)
        .select_related("reviewer")
        .order_by("-id")
        .first()
    )


def review_feedback(environment: Environment) -> list[Review]:
    """Decisions on earlier relatives that were not approvals: the parent's and the siblings'."""
    if environment.parent_id is None:
        return []
    near = Q(environment=environment.parent_id) | Q(environment__parent=environment.parent_id)
    return list(
        Review.objects.filter(near)
        .exclude(environment=environment)
        .filter(verdict__in=[ReviewVerdict.REJECTED, ReviewVerdict.CHANGES_REQUESTED])
        .filter(undone_by__isnull=True)
        .select_related("reviewer", "environment")
        .defer("environment__manifest", "environment__demands", "environment__sequence")
        .order_by("-id")[:5]
    )
