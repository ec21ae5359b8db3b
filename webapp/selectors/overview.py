"""The dashboard: what waits, what runs, what is new, what failed, how difficulty rises."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Avg, Count, Q

from webapp.lifecycle import ReviewStatus, RunStatus, VerificationStatus
from webapp.models import Environment, EvolutionRun
from webapp.selectors.environments import list_rows
from webapp.selectors.runs import Progress, list_runs, progress_of

NEWEST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Totals:
    """How many environments there are, by what became of them."""

    total: int
    seeds: int
    evolved: int
    valid: int
    waiting: int
    approved: int
    changes_requested: int


def totals() -> Totals:
    """Counts over everything that is stored, in one query."""
    evolved = Q(parent__isnull=False)
    valid = evolved & Q(verification=VerificationStatus.VALID)
    counts = Environment.objects.aggregate(
        total=Count("id"),
        evolved=Count("id", filter=evolved),
        valid=Count("id", filter=valid),
        waiting=Count("id", filter=valid & Q(review=ReviewStatus.UNREVIEWED)),
        approved=Count("id", filter=Q(review=ReviewStatus.APPROVED)),
        changes_requested=Count("id", filter=Q(review=ReviewStatus.CHANGES_REQUESTED)),
    )
    return Totals(seeds=counts["total"] - counts["evolved"], **counts)


def active_runs() -> list[tuple[EvolutionRun, Progress]]:
    """Runs that have not ended, newest first, with their progress."""
    open_statuses = [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PAUSED]
    return [(run, progress_of(run)) for run in list_runs().filter(status__in=open_statuses)[:5]]


def newest_valid() -> list[Environment]:
    """The newest valid evolved environments."""
    rows = list_rows().filter(verification=VerificationStatus.VALID, parent__isnull=False)
    return list(rows[:NEWEST_ROWS])


@dataclass(frozen=True, slots=True)
class GenerationPoint:
    """Means over the valid environments of one generation, with their number."""

    generation: int
    n: int
    demands: float
    d_t: float | None
    d_t_n: int


def difficulty_by_generation() -> tuple[GenerationPoint, ...]:
    """Mean live demands and mean D_T of valid environments, per generation."""
    rows = (
        Environment.objects.filter(verification=VerificationStatus.VALID)
        .values("generation")
        .annotate(n=Count("id"), demands=Avg("demands_live"), mean=Avg("d_t"), d_t_n=Count("d_t"))
        .order_by("generation")
    )
    return tuple(
        GenerationPoint(r["generation"], r["n"], r["demands"], r["mean"], r["d_t_n"]) for r in rows
    )
