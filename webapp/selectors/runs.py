"""Runs: yield, the direction by aspect grid, generations, failures, progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Avg, Count, Max, Min, Q, QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone

from webapp.lifecycle import ReviewStatus, RunStatus, VerificationStatus
from webapp.models import Environment, Event, EvolutionRun, EvolutionStep
from webapp.presentation.marks import ASPECTS, DIRECTIONS

STALLED_SECONDS = 120
EVENT_ROWS = 30
_VALID = Q(verification=VerificationStatus.VALID)
_APPROVED = Q(review=ReviewStatus.APPROVED)


def list_runs() -> QuerySet[EvolutionRun]:
    """All runs, newest first, with their step and environment counts."""
    done = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED]
    return (
        EvolutionRun.objects.annotate(
            step_count=Count("steps", distinct=True),
            done_count=Count("steps", filter=Q(steps__status__in=done), distinct=True),
        )
        .select_related("created_by")
        .order_by("-id")
    )


def get_run(pk: int) -> EvolutionRun:
    """The run, or 404."""
    return get_object_or_404(EvolutionRun.objects.select_related("created_by"), pk=pk)


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """One stage of the yield. `share` is of the stage before, `of`; None for the first."""

    label: str
    count: int
    share: float | None
    of: str
    width: float
    """Percent of the widest stage."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """Yield of one direction and aspect."""

    direction: str
    aspect: str
    built: int
    valid: int
    approved: int

    @property
    def rate(self) -> float | None:
        """Valid of built."""
        return self.valid / self.built if self.built else None


@dataclass(frozen=True, slots=True)
class GridRow:
    """A direction's cells in order of aspect."""

    direction: str
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands. `seconds_left` is a guess from the pace so far."""

    planned: int
    done: int
    failed: int
    running: int
    seconds: float | None
    seconds_left: float | None
    is_stalled: bool

    @property
    def percent(self) -> float:
        """Share of the planned steps that ended."""
        return 100 * self.done / self.planned if self.planned else 0.0


def progress_of(run: EvolutionRun) -> Progress:
    """Counts of a run's steps, with the pace and whether its workers went silent."""
    counts = run.steps.aggregate(
        done=Count("id", filter=~Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])),
        failed=Count("id", filter=Q(status=RunStatus.FAILED)),
        running=Count("id", filter=Q(status=RunStatus.RUNNING)),
    )
    planned = run.lineages.count() * run.generations * run.children
    end = run.finished_at or timezone.now()
    seconds = (end - run.started_at).total_seconds() if run.started_at else None
    left = None
    if run.status == RunStatus.RUNNING and seconds and counts["done"]:
        left = seconds / counts["done"] * max(0, planned - counts["done"])
    return Progress(
        planned=planned,
        done=counts["done"],
        failed=counts["failed"],
        running=counts["running"],
        seconds=seconds,
        seconds_left=left,
        is_stalled=run.status == RunStatus.RUNNING and _is_silent(run),
    )


def _is_silent(run: EvolutionRun) -> bool:
    last: datetime | None = run.events.aggregate(at=Max("at"))["at"] or run.started_at
    return last is not None and (timezone.now() - last).total_seconds() > STALLED_SECONDS


def funnel(run: EvolutionRun) -> tuple[FunnelStage, ...]:
    """Proposed (steps begun), built (candidates), valid, approved."""
    begun = run.steps.exclude(status=RunStatus.QUEUED)
    led = begun.filter(candidates__isnull=False).distinct().count()
    kept = run.environments.aggregate(
        built=Count("id"), valid=Count("id", filter=_VALID), approved=Count("id", filter=_APPROVED)
    )
    refusals = sum(len(rows) for rows in begun.values_list("refusals", flat=True))
    proposed = max(kept["built"] + refusals, led)
    counts = [
        ("proposed", proposed),
        ("built", kept["built"]),
        ("valid", kept["valid"]),
        ("approved", kept["approved"]),
    ]
    widest = max(1, proposed)
    stages: list[FunnelStage] = []
    for index, (label, count) in enumerate(counts):
        of, before = counts[index - 1] if index else ("", 0)
        share = count / before if before else None
        stages.append(FunnelStage(label, count, share, of, 100 * count / widest))
    return tuple(stages)


def grid(run: EvolutionRun | None = None) -> tuple[GridRow, ...]:
    """Yield per cell, of one run or of everything."""
    rows = Environment.objects.filter(parent__isnull=False)
    if run is not None:
        rows = rows.filter(run=run)
    found = {
        (direction, aspect): (built, valid, approved)
        for direction, aspect, built, valid, approved in rows.values_list("direction", "aspect")
        .annotate(
            built=Count("id"), valid=Count("id", filter=_VALID), ok=Count("id", filter=_APPROVED)
        )
        .order_by()
    }
    return tuple(
        GridRow(
            direction,
            tuple(GridCell(direction, a, *found.get((direction, a), (0, 0, 0))) for a in ASPECTS),
        )
        for direction in DIRECTIONS
    )


def generations(run: EvolutionRun) -> Sequence[Mapping[str, Any]]:
    """Per generation: built, valid, approved, mean demands and mean D_T of the valid ones."""
    return list(
        run.environments.values("generation")
        .annotate(
            built=Count("id"),
            valid=Count("id", filter=_VALID),
            approved=Count("id", filter=_APPROVED),
            demands=Avg("demands_live", filter=_VALID),
            mean_d_t=Avg("d_t", filter=_VALID),
            d_t_low=Min("d_t", filter=_VALID),
            d_t_high=Max("d_t", filter=_VALID),
        )
        .order_by("generation")
    )


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures that look alike: the gate, one example of the reason, how many."""

    gate: str
    example: str
    count: int


def failures(run: EvolutionRun | None = None, *, limit: int = 8) -> tuple[FailureGroup, ...]:
    """Invalid environments by the first gate that failed, the commonest first."""
    rows = Environment.objects.filter(verification=VerificationStatus.INVALID).exclude(failure="")
    if run is not None:
        rows = rows.filter(run=run)
    return group_failures(rows.order_by("-id").values_list("failure", flat=True)[:2_000], limit)


def group_failures(lines: Iterable[str], limit: int) -> tuple[FailureGroup, ...]:
    """Group "gate: reason" lines by gate, with the newest reason as the example."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for line in lines:
        gate, _, reason = line.partition(": ")
        counts[gate] += 1
        examples.setdefault(gate, reason)
    return tuple(FailureGroup(g, examples[g], n) for g, n in counts.most_common(limit))


def running_steps(run: EvolutionRun) -> list[EvolutionStep]:
    """What is being worked on right now."""
    rows = run.steps.filter(status=RunStatus.RUNNING).select_related("lineage")
    return list(rows.order_by("id")[:12])


def waiting_steps(run: EvolutionRun) -> list[EvolutionStep]:
    """Steps that were put back, and why: for want of a model, or of budget."""
    if run.author == "procedural":
        return []
    rows = run.steps.filter(status=RunStatus.QUEUED).exclude(error="").select_related("lineage")
    return list(rows.order_by("sent_at")[:6])


def run_events(
    run: EvolutionRun, *, after: int | None = None, before: int | None = None
) -> list[Event]:
    """Events of a run, newest first: those after an id, or a page before one."""
    rows = run.events.select_related("actor", "step__lineage")
    if after is not None:
        rows = rows.filter(id__gt=after)
    if before is not None:
        rows = rows.filter(id__lt=before)
    return list(rows.order_by("-id")[:EVENT_ROWS])


def last_event_id(run: EvolutionRun) -> int:
    """The newest event's id; 0 when there is none."""
    return run.events.aggregate(newest=Max("id"))["newest"] or 0


def count_events_after(run: EvolutionRun, event_id: int) -> int:
    """How many events are newer, counted up to 1,000."""
    return run.events.filter(id__gt=event_id).values("id")[:1_000].count()


def state_mark(run: EvolutionRun) -> tuple[object, ...]:
    """A value that changes whenever what the run's page shows has changed."""
    environments = run.environments.aggregate(n=Count("id"), at=Max("updated_at"))
    steps = run.steps.aggregate(n=Count("id"), running=Count("id", filter=Q(status="running")))
    calls = {} if run.author == "procedural" else run.calls.aggregate(n=Max("id"))
    return (*environments.values(), *steps.values(), *calls.values())
