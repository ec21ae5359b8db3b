"""What a run came to, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.db.models import Avg, Count, Q, QuerySet, Sum

from webapp.lifecycle import RunStatus, VerificationStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, Verification


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run's figures; lists go by generation, 0 first. `seconds` is wall time."""

    seeds: int
    built: int
    valid: int
    yield_: float
    generations: int
    demands_bite: float
    mean_demands: list[float]
    mean_d_t: list[float]
    sandboxes: int
    seconds: float

    def as_json(self) -> dict[str, object]:
        """The same, under the names that machines read."""
        values = asdict(self)
        values["yield"] = values.pop("yield_")
        order = ["seeds", "built", "valid", "yield"]
        return {key: values[key] for key in [*order, *(k for k in values if k not in order)]}


def summarize_run(run: EvolutionRun) -> RunSummary:
    """Figures over a run's seeds and the children that it built."""
    seeds = Environment.objects.filter(lineage__runs=run, parent=None)
    built = _built(run)
    valid = built.filter(verification=VerificationStatus.VALID)
    bites = valid.aggregate(live=Sum("demands_live"), bite=Sum("demands_bite"))
    everything = Environment.objects.filter(
        Q(pk__in=valid.values("pk")) | Q(pk__in=seeds.values("pk"))
    )
    means = list(
        everything.values("generation")
        .annotate(demands=Avg("demands_live"), d_t=Avg("d_t"), n=Count("pk"))
        .order_by("generation")
    )
    sandboxes = Verification.objects.filter(
        Q(environment__in=built) | Q(environment__in=seeds)
    ).aggregate(n=Sum("trials__sandboxes"))["n"]
    steps = run.steps.filter(status=RunStatus.COMPLETED).count()
    ended = run.finished_at or run.created_at
    return RunSummary(
        seeds=seeds.count(),
        built=built.count(),
        valid=valid.count(),
        yield_=round(valid.count() / steps, 4) if steps else 0.0,
        generations=max((row["generation"] for row in means), default=0),
        demands_bite=round((bites["bite"] or 0) / bites["live"], 4) if bites["live"] else 0.0,
        mean_demands=[round(row["demands"], 3) for row in means],
        mean_d_t=[round(row["d_t"] or 0.0, 3) for row in means],
        sandboxes=sandboxes or 0,
        seconds=round((ended - run.created_at).total_seconds(), 1),
    )


def _built(run: EvolutionRun) -> QuerySet[Environment]:
    """Children built by the run, and those it found built by an earlier one."""
    accepted = EvolutionStep.objects.filter(run=run, child__isnull=False).values("child")
    return Environment.objects.filter(Q(run=run) | Q(pk__in=accepted))
