"""Reviews: leased, decided on the digest that was seen, undone by a compensating row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.lifecycle import ReviewStatus
from webapp.models import Environment, Review, ReviewLease, ReviewVerdict, Role, User
from webapp.models.review import REASON_LABELS
from webapp.selectors.queue import free_for, waiting_for_review
from webapp.services import transitions
from webapp.services.errors import InvalidInput, NotAllowed, StaleReview, TransitionRefused

LEASE = timedelta(minutes=15)
NEEDS_REASON = (ReviewVerdict.REJECTED, ReviewVerdict.CHANGES_REQUESTED)


def decide(
    environment_id: int,
    reviewer: User,
    verdict: str,
    digest: str,
    *,
    reasons: Sequence[str] = (),
    comment: str = "",
) -> Review:
    """Record a decision on the digest that the reviewer saw.

    Raises NotAllowed, InvalidInput (no reason where one is needed), or StaleReview when the
    environment was decided, claimed or changed by somebody else meanwhile.
    """
    _require_reviewer(reviewer)
    _check_input(verdict, reasons, comment)
    with transaction.atomic():
        environment = Environment.objects.select_for_update().get(pk=environment_id)
        if environment.digest != digest:
            raise StaleReview("this decision is about another digest; reload and look again")
        if environment.review != ReviewStatus.UNREVIEWED:
            raise StaleReview(f"already {environment.get_review_display()}; reload to see by whom")
        if verdict == ReviewVerdict.APPROVED and environment.verification != "valid":
            raise StaleReview("only valid environments can be approved; look at the gates")
        holder = _holder(environment)
        if holder is not None and holder != reviewer:
            raise StaleReview(f"held by {holder.get_username()} right now; take the next one")
        review = Review.objects.create(
            environment=environment,
            reviewer=reviewer,
            verdict=verdict,
            digest=digest,
            reasons=list(reasons),
            comment=comment.replace("\0", ""),
        )
        _move(environment, verdict, reviewer, reasons, comment)
        ReviewLease.objects.filter(environment=environment).delete()
    return review


def undo(review_id: int, reviewer: User) -> Review:
    """Take a decision back; possible until a frozen version contains the environment.

    Raises NotAllowed (another's decision, below curator), or StaleReview.
    """
    _require_reviewer(reviewer)
    with transaction.atomic():
        review = Review.objects.select_related("environment").get(pk=review_id)
        environment = Environment.objects.select_for_update().get(pk=review.environment_id)
        if review.reviewer_id != reviewer.pk and not reviewer.has_role(Role.CURATOR):
            raise NotAllowed("only the reviewer or a curator takes a decision back")
        if review.verdict == ReviewVerdict.UNDONE or environment.review != review.verdict:
            raise StaleReview("this decision no longer stands; reload")
        if environment.memberships.exists():
            raise StaleReview("a frozen dataset version contains it; it can no longer be undone")
        try:
            with transaction.atomic():
                undone = Review.objects.create(
                    environment=environment,
                    reviewer=reviewer,
                    verdict=ReviewVerdict.UNDONE,
                    digest=review.digest,
                    undoes=review,
                )
        except IntegrityError:
            raise StaleReview("this decision was already taken back") from None
        transitions.move(
            environment,
            "review",
            ReviewStatus.UNREVIEWED,
            actor=reviewer,
            reason="decision taken back",
        )
    return undone


def claim(environment_id: int, reviewer: User) -> ReviewLease:
    """Hold an environment for fifteen minutes, or hold it longer. Raises StaleReview."""
    _require_reviewer(reviewer)
    with transaction.atomic():
        environment = Environment.objects.select_for_update().get(pk=environment_id)
        holder = _holder(environment)
        if holder is not None and holder != reviewer:
            raise StaleReview(f"held by {holder.get_username()} right now; take the next one")
        return _hold(environment, reviewer)


def claim_next(reviewer: User, *, skip: Sequence[int] = ()) -> Environment | None:
    """Hold the next environment that waits and that nobody else holds; None when all is done."""
    _require_reviewer(reviewer)
    free = waiting_for_review().filter(free_for(reviewer)).exclude(pk__in=list(skip))
    with transaction.atomic():
        locked = free.order_by("pk").select_for_update(skip_locked=True, of=("self",))
        while (environment := locked.first()) is not None:
            # The lease is another table's row: it is as good as seen only under our lock.
            if _holder(environment) in (None, reviewer):
                _hold(environment, reviewer)
                return environment
    return None


def release(environment_id: int, reviewer: User) -> None:
    """Give an environment back; no error when it was not held."""
    ReviewLease.objects.filter(environment_id=environment_id, holder=reviewer).delete()


def _hold(environment: Environment, reviewer: User) -> ReviewLease:
    lease, _ = ReviewLease.objects.update_or_create(
        environment=environment,
        defaults={"holder": reviewer, "expires_at": timezone.now() + LEASE},
    )
    return lease


def _holder(environment: Environment) -> User | None:
    lease = (
        ReviewLease.objects.filter(environment=environment, expires_at__gte=timezone.now())
        .select_related("holder")
        .first()
    )
    return lease.holder if lease else None


def _check_input(verdict: str, reasons: Sequence[str], comment: str) -> None:
    if verdict not in (ReviewVerdict.APPROVED, *NEEDS_REASON):
        raise InvalidInput("choose approve, changes or reject", "verdict")
    unknown = [reason for reason in reasons if reason not in REASON_LABELS]
    if unknown:
        raise InvalidInput(f"no such reason: {unknown[0][:40]}", "reasons")
    if verdict in NEEDS_REASON and not reasons:
        raise InvalidInput("choose at least one reason", "reasons")
    if "other" in reasons and not comment.strip():
        raise InvalidInput("say in the comment what the other reason is", "comment")
    if len(comment) > 10_000:
        raise InvalidInput("keep the comment below 10,000 characters", "comment")


def _move(
    environment: Environment, verdict: str, reviewer: User, reasons: Sequence[str], comment: str
) -> None:
    said = "; ".join([*(REASON_LABELS[reason] for reason in reasons), comment.strip()[:200]])
    try:
        transitions.move(environment, "review", verdict, actor=reviewer, reason=said.strip("; "))
    except TransitionRefused as error:
        raise StaleReview(str(error)) from None


def _require_reviewer(user: User) -> None:
    if not user.has_role(Role.REVIEWER):
        raise NotAllowed("only reviewers decide; ask an administrator for the role")
