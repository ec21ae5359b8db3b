"""What models took: by role, in all, of a budget, for each environment that was accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean, pstdev
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from evolution.llm.calls import CallOutcome, Role, Usage
from webapp.lifecycle import RunStatus, VerificationStatus
from webapp.models import EvolutionRun, EvolutionStep, ModelCall
from webapp.models.call import TO_MODELS

SILENCE_SECONDS = 900.0
"""A longer silence in a run's log is no work: its workers were gone."""
RECENT_STEPS = 200
"""How many of the newest steps a forecast looks at."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What some calls took together. `faults` are attempts that brought no answer."""

    name: str
    calls: int
    faults: int
    input_tokens: int
    output_tokens: int
    usd: float
    seconds: float
    is_estimated: bool

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One limit: what is gone of it, and how much there was."""

    unit: str
    spent: str
    limit: str
    share: float

    @property
    def percent(self) -> float:
        """What is gone, in percent, at most 100."""
        return min(100.0, 100 * self.share)


@dataclass(frozen=True, slots=True)
class RunSpend:
    """A run's spend: by role, in all, and for each environment that was accepted."""

    roles: tuple[Spend, ...]
    total: Spend
    faults: tuple[tuple[str, int], ...]
    accepted: int

    @property
    def usd_each(self) -> float | None:
        """US dollars per accepted environment."""
        return self.total.usd / self.accepted if self.accepted else None

    @property
    def tokens_each(self) -> int | None:
        """Tokens per accepted environment."""
        return round(self.total.tokens / self.accepted) if self.accepted else None


_FIGURES: dict[str, Any] = {
    "calls": Count("id"),
    "faults": Count("id", filter=~Q(outcome=CallOutcome.ANSWERED)),
    "read": Sum("input_tokens", default=0),
    "written": Sum("output_tokens", default=0),
    "cost": Sum("usd", default=0.0),
    "took": Sum("seconds", default=0.0),
    "guessed": Count("id", filter=Q(is_estimated=True)),
}


def _spend(name: str, row: dict[str, Any]) -> Spend:
    return Spend(
        name=name,
        calls=row["calls"],
        faults=row["faults"],
        input_tokens=int(row["read"]),
        output_tokens=int(row["written"]),
        usd=float(row["cost"]),
        seconds=float(row["took"]),
        is_estimated=row["guessed"] > 0,
    )


def spend_by_role(rows: QuerySet[ModelCall]) -> tuple[Spend, ...]:
    """What these calls took, role by role, in the order in which roles play."""
    counted: Any = rows.values("role").annotate(**_FIGURES).order_by()
    found = {row["role"]: row for row in counted}
    return tuple(_spend(role.value, found[role.value]) for role in Role if role.value in found)


def run_spend(run: EvolutionRun) -> RunSpend | None:
    """What a run spent on models; None for one that asked none and never will."""
    rows = ModelCall.objects.filter(TO_MODELS, run=run)
    roles = spend_by_role(rows)
    if not roles and run.author == "procedural":
        return None
    faults = (
        rows.exclude(outcome=CallOutcome.ANSWERED)
        .values_list("outcome")
        .annotate(n=Count("id"))
        .order_by("-n", "outcome")
    )
    return RunSpend(
        roles=roles,
        total=total_of(roles),
        faults=tuple(faults),
        accepted=run.steps.filter(child__verification=VerificationStatus.VALID).count(),
    )


def total_of(roles: tuple[Spend, ...]) -> Spend:
    """What all roles took together."""
    return Spend(
        "all",
        sum(s.calls for s in roles),
        sum(s.faults for s in roles),
        sum(s.input_tokens for s in roles),
        sum(s.output_tokens for s in roles),
        sum(s.usd for s in roles),
        sum(s.seconds for s in roles),
        any(s.is_estimated for s in roles),
    )


def seconds_at_work(run: EvolutionRun, now: datetime | None = None) -> float:
    """How long a run was at work so far, by the wall; pauses do not count, nor silent workers."""
    total, before, is_at_work = 0.0, None, False
    rows = run.events.order_by("id").values_list("at", "kind", "target")
    for at, kind, target in rows.iterator():
        if is_at_work and before is not None:
            total += min(SILENCE_SECONDS, max(0.0, (at - before).total_seconds()))
        before = at
        if kind == "evolutionrun.status":
            is_at_work = target == RunStatus.RUNNING
    if is_at_work and before is not None:
        gap = ((now or timezone.now()) - before).total_seconds()
        total += min(SILENCE_SECONDS, max(0.0, gap))
    return total


def budget_rows(run: EvolutionRun, spend: RunSpend) -> tuple[BudgetRow, ...]:
    """The limits of a run, each with what is gone of it."""
    total = spend.total
    rows = []
    if run.budget_usd is not None:
        rows.append(
            BudgetRow(
                "USD", f"{total.usd:,.4f}", f"{run.budget_usd:,.2f}", total.usd / run.budget_usd
            )
        )
    if run.budget_tokens is not None:
        rows.append(
            BudgetRow(
                "tokens",
                f"{total.tokens:,}",
                f"{run.budget_tokens:,}",
                total.tokens / run.budget_tokens,
            )
        )
    if run.budget_seconds is not None:
        seconds = seconds_at_work(run)
        rows.append(
            BudgetRow(
                "seconds",
                f"{seconds:,.0f}",
                f"{run.budget_seconds:,.0f}",
                seconds / run.budget_seconds,
            )
        )
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What `steps` steps that ended took of models together.

    `seconds` are those that models were waited for; `variation` is the standard deviation of a
    step's tokens over their mean.
    """

    steps: int = 0
    by_role: Mapping[Role, Usage] = field(default_factory=dict)
    calls: int = 0
    seconds: float = 0.0
    variation: float = 0.0


def recorded_steps() -> Recorded:
    """What the newest steps that ended took, as far back as RECENT_STEPS."""
    ended = EvolutionStep.objects.filter(
        status=RunStatus.COMPLETED, run__author="llm", run__replay_of=None
    ).order_by("-pk")
    steps = list(ended.values_list("pk", flat=True)[:RECENT_STEPS])
    calls = ModelCall.objects.filter(TO_MODELS, step__in=steps)
    rows = spend_by_role(calls)
    each = calls.values("step").annotate(n=Sum("input_tokens") + Sum("output_tokens")).order_by()
    tokens = [float(row["n"]) for row in each]
    tokens += [0.0] * (len(steps) - len(tokens))  # those that were answered from the record
    total = total_of(rows)
    return Recorded(
        steps=len(steps),
        by_role={Role(s.name): Usage(s.input_tokens, s.output_tokens) for s in rows},
        calls=total.calls,
        seconds=total.seconds,
        variation=pstdev(tokens) / fmean(tokens) if total.tokens else 0.0,
    )
