"""Leases: who works on a row, until when, and what happens when nobody answers any more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from evolution.gates.desk import MACHINERY
from webapp import dispatch
from webapp.lifecycle import RunStatus, TrialStatus, VerificationStatus
from webapp.models import (
    Environment,
    Errand,
    Event,
    EvolutionRun,
    EvolutionStep,
    ModelCall,
    Trial,
    Verification,
)
from webapp.models.call import LAST
from webapp.services import transitions
from webapp.services.errors import TransitionRefused

LEASE_SECONDS = 30
HEARTBEAT_SECONDS = 8
MAX_ATTEMPTS = 3
RESEND_SECONDS = 20

Leased = EvolutionStep | Verification | Errand


def claim(row: Leased) -> bool:
    """Take a queued row to work on; False when it is taken, done, or of a run that rests."""
    running = EvolutionRun.objects.filter(status=RunStatus.RUNNING)
    try:
        transitions.move(
            row,
            "status",
            RunStatus.RUNNING,
            sources=[RunStatus.QUEUED],
            where={"run__in": running} if isinstance(row, EvolutionStep) else None,
            set_fields={"attempt": F("attempt") + 1, "lease_expires_at": _until()},
        )
    except TransitionRefused:
        return False
    return True


def extend(row: Leased) -> bool:
    """Hold the lease longer; False when it was lost, and the work is to be dropped."""
    rows = type(row)._default_manager.filter(
        pk=row.pk, status=RunStatus.RUNNING, attempt=row.attempt
    )
    return rows.update(lease_expires_at=_until()) == 1


def put_back(row: Leased, reason: str, *, set_fields: dict[str, Any] | None = None) -> None:
    """Queue work again that could not be done now; what a cancelled run wanted ends instead.

    Raises TransitionRefused for a zombie.
    """
    now = timezone.now()
    fields = {"lease_expires_at": None, "sent_at": now, **(set_fields or {})}
    is_unwanted = isinstance(row, EvolutionStep) and is_run_cancelled(row.run_id)
    transitions.move(
        row,
        "status",
        RunStatus.CANCELLED if is_unwanted else RunStatus.QUEUED,
        sources=[RunStatus.RUNNING],
        where={"attempt": row.attempt},
        set_fields={**fields, "finished_at": now} if is_unwanted else fields,
        reason=reason,
    )
    if is_unwanted:
        abandon_candidates(row, reason)


def is_run_cancelled(run_id: int) -> bool:
    """Whether a run was cancelled, as the database has it now."""
    return EvolutionRun.objects.filter(pk=run_id, status=RunStatus.CANCELLED).exists()


def has_attempts_left(row: Leased) -> bool:
    """Whether work that ended without a result may be tried again."""
    excused = row.excused if isinstance(row, EvolutionStep) else 0
    return row.attempt - excused < MAX_ATTEMPTS


def expire(now: datetime | None = None) -> int:
    """Put work back whose worker went silent; returns how many.

    It fails when three attempts in a row left nothing behind, and at once when its run was
    cancelled: nobody would claim it. Workers that were killed while they got on say nothing
    against the work.
    """
    moment = now or timezone.now()
    count = 0
    for model in (EvolutionStep, Verification, Errand):
        for row in model.objects.filter(status=RunStatus.RUNNING, lease_expires_at__lt=moment):
            count += _give_back(row, moment)
    return count


def _give_back(row: Leased, moment: datetime) -> int:
    is_unwanted = isinstance(row, EvolutionStep) and is_run_cancelled(row.run_id)
    is_given_up = is_unwanted or not (has_attempts_left(row) or _got_on(row))
    failed = TrialStatus.ERRORED if isinstance(row, Verification) else RunStatus.FAILED
    reason = f"the worker went silent in attempt {row.attempt}"
    try:
        transitions.move(
            row,
            "status",
            failed if is_given_up else RunStatus.QUEUED,
            sources=[RunStatus.RUNNING],
            where={"attempt": row.attempt, "lease_expires_at__lt": moment},
            set_fields={
                "lease_expires_at": None,
                **({"error": reason, "finished_at": moment} if is_given_up else {}),
            },
            reason=reason,
        )
    except TransitionRefused:
        return 0
    if is_given_up:
        abandon_candidates(row, reason)
    return 1


def _got_on(row: Leased) -> bool:
    """Whether the last three attempts put anything on record that the next one need not repeat."""
    if isinstance(row, Errand):
        return False
    subject = {"step": row} if isinstance(row, EvolutionStep) else {"environment": row.environment}
    claims = Event.objects.filter(
        kind=f"{row._meta.model_name}.status", target=RunStatus.RUNNING, **subject
    ).order_by("-id")
    begun = claims[MAX_ATTEMPTS - 1 : MAX_ATTEMPTS].values_list("at", flat=True).first()
    if begun is None:
        return False
    if isinstance(row, Verification):
        trials = Trial.objects.filter(verification=row)
        calls = ModelCall.objects.none()
    else:
        trials = Trial.objects.filter(verification__environment__step=row)
        calls = ModelCall.objects.filter(LAST, step=row, created_at__gt=begun)
    new = trials.filter(created_at__gt=begun).exclude(outcome__in=MACHINERY)
    return new.exists() or calls.exists()


def give_up(verification: Verification, reason: str) -> None:
    """Nobody works on a claimed verification any more, and nobody shall: it is errored."""
    verification.refresh_from_db()
    try:
        transitions.move(
            verification,
            "status",
            TrialStatus.ERRORED,
            sources=[TrialStatus.RUNNING],
            where={"attempt": verification.attempt},
            set_fields={
                "lease_expires_at": None,
                "error": reason,
                "finished_at": timezone.now(),
            },
            reason=reason,
        )
    except TransitionRefused:
        return
    abandon_candidates(verification, reason)


def abandon_candidates(row: Leased, reason: str) -> None:
    """Nobody will finish what this work had begun to verify: mark it as spoiled machinery."""
    if isinstance(row, Errand):
        return
    open_rows = (
        Verification.objects.filter(environment__step=row, status=TrialStatus.RUNNING)
        if isinstance(row, EvolutionStep)
        else Verification.objects.none()
    )
    for verification in open_rows:
        transitions.move(
            verification, "status", TrialStatus.ERRORED, set_fields={"error": reason}, reason=reason
        )
    environments = (
        Environment.objects.filter(step=row)
        if isinstance(row, EvolutionStep)
        else Environment.objects.filter(pk=row.environment_id)
    )
    for environment in environments.filter(verification=VerificationStatus.VERIFYING):
        transitions.move(environment, "verification", VerificationStatus.ERRORED, reason=reason)


def resend(now: datetime | None = None) -> int:
    """Ring again for what has been queued for too long. Returns how many."""
    moment = now or timezone.now()
    late = moment - timedelta(seconds=RESEND_SECONDS)
    count = 0
    waiting = {
        dispatch.RUN_STEP: EvolutionStep.objects.filter(run__status=RunStatus.RUNNING),
        dispatch.VERIFY: Verification.objects.all(),
        dispatch.RUN_ERRAND: Errand.objects.all(),
    }
    for job, rows in waiting.items():
        late_rows = rows.filter(status=RunStatus.QUEUED, sent_at__lt=late)
        for pk in late_rows.values_list("pk", flat=True):
            rows.filter(pk=pk).update(sent_at=moment)
            dispatch.send(job, pk)
            count += 1
    return count


def _until() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_SECONDS)
