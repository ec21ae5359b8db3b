"""One environment, from every side: what its pages show."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Prefetch
from django.shortcuts import get_object_or_404

from evolution.gates.desk import MACHINERY
from sandbox.contracts import Outcome
from webapp.models import (
    DifficultyScore,
    Environment,
    Event,
    Measure,
    Review,
    SolverKind,
    Trial,
)

WITHOUT = "without:"
"""How the demands gate names the solver that leaves one demand's adaptation out."""


def get_environment(pk: int) -> Environment:
    """The environment with its lineage, parent and run, or 404."""
    return get_object_or_404(
        Environment.objects.select_related("lineage", "run", "current_verification").defer(
            "demands"
        ),
        pk=pk,
    )


def get_parent(environment: Environment) -> Environment | None:
    """The parent with its instruction and sequence; None for a seed."""
    if environment.parent_id is None:
        return None
    return Environment.objects.defer("demands").get(pk=environment.parent_id)


def get_root(environment: Environment) -> Environment:
    """The seed of the lineage."""
    return Environment.objects.defer("demands").get(
        lineage_id=environment.lineage_id, parent__isnull=True
    )


@dataclass(frozen=True, slots=True)
class SequenceCell:
    """A pair of the sequence; `change` is same, added or removed, per half."""

    scenario: str
    skill: str
    scenario_change: str
    skill_change: str


def sequence_change(
    before: Sequence[dict[str, str]], after: Sequence[dict[str, str]]
) -> tuple[tuple[SequenceCell, ...], tuple[SequenceCell, ...]]:
    """Both sequences, with what the step changed marked on each side."""
    left, right = [_pair(p) for p in before], [_pair(p) for p in after]
    old = [SequenceCell(*pair, "same", "same") for pair in left]
    new = [SequenceCell(*pair, "same", "same") for pair in right]
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            continue
        paired = i2 - i1 == j2 - j1
        for i in range(i1, i2):
            other = right[j1 + i - i1] if paired else ("", "")
            old[i] = _cell(left[i], other, "removed")
        for j in range(j1, j2):
            other = left[i1 + j - j1] if paired else ("", "")
            new[j] = _cell(right[j], other, "added")
    return tuple(old), tuple(new)


def _pair(value: dict[str, str]) -> tuple[str, str]:
    return str(value.get("scenario", "")), str(value.get("skill", ""))


def _cell(pair: tuple[str, str], other: tuple[str, str], change: str) -> SequenceCell:
    marks = [change if one != two else "same" for one, two in zip(pair, other, strict=True)]
    return SequenceCell(*pair, *marks)


@dataclass(frozen=True, slots=True)
class DemandRow:
    """A live demand, as shown. `bites` is None where the gate has not said."""

    id: str
    title: str
    why: str
    operator: str
    direction: str
    aspect: str
    effect: str
    notch: int
    checks: tuple[str, ...]
    bites: bool | None
    trial_id: int | None
    is_new: bool


def demand_rows(environment: Environment) -> tuple[DemandRow, ...]:
    """The live demands, oldest first, the newest marked."""
    demands = Environment.objects.values_list("demands", flat=True).get(pk=environment.pk)
    all_bite = environment.demands_bite == environment.demands_live
    left_out = _trials_without(environment)
    return tuple(
        DemandRow(
            id=str(demand.get("id", "")),
            title=str(demand.get("title", "")),
            why=str(demand.get("why", "")),
            operator=str(demand.get("operator", "")),
            direction=str(demand.get("direction", "")),
            aspect=str(demand.get("aspect", "")),
            effect=str(demand.get("effect", "")),
            notch=int(demand.get("notch", 0)),
            checks=tuple(str(check) for check in demand.get("checks", ())),
            bites=True if all_bite else left_out.get(str(demand.get("id")), (None, None))[1],
            trial_id=left_out.get(str(demand.get("id")), (None, None))[0],
            is_new=not environment.is_seed and index == len(demands) - 1,
        )
        for index, demand in enumerate(demands)
        if isinstance(demand, dict)
    )


def _trials_without(environment: Environment) -> dict[str, tuple[int, bool]]:
    """By demand: the trial that left its adaptation out, and whether it failed as it must."""
    rows = Trial.objects.filter(
        verification=environment.current_verification_id, solver__startswith=WITHOUT
    )
    return {
        solver.removeprefix(WITHOUT): (pk, outcome == Outcome.FAIL)
        for pk, solver, outcome in rows.values_list("pk", "solver", "outcome")
    }


@dataclass(frozen=True, slots=True)
class Difficulty:
    """The three kinds of numbers, kept apart. `parts` are D_T's, in nats."""

    d_t: float | None
    parts: tuple[tuple[str, float], ...]
    basis: str
    measured: tuple[DifficultyScore, ...]
    simulated: tuple[DifficultyScore, ...]


def difficulty_of(environment: Environment) -> Difficulty:
    """All stored scores of an environment."""
    scores = list(
        DifficultyScore.objects.filter(environment=environment)
        .select_related("solver")
        .order_by("measure", "solver__name")
    )
    single = {score.measure: score for score in scores if score.solver_id is None}
    rates = [score for score in scores if score.measure == Measure.PASS_RATE and score.solver]
    shown = (Measure.LENGTH, Measure.SCENARIO_RARITY, Measure.SKILL_RARITY)
    parts = tuple((m.label, single[m].value) for m in shown if m in single)
    total = single.get(Measure.D_T)
    return Difficulty(
        d_t=total.value if total else environment.d_t,
        parts=parts,
        basis=total.basis if total else "",
        measured=tuple(s for s in rates if s.solver and s.solver.kind != SolverKind.SIMULATED),
        simulated=tuple(s for s in rates if s.solver and s.solver.kind == SolverKind.SIMULATED),
    )


def light_trials() -> Any:
    """Trials without their packed records."""
    return Trial.objects.defer("record")


def get_trial(pk: int) -> Trial:
    """A trial with its verification and environment, or 404."""
    rows = Trial.objects.select_related("verification", "verification__environment").defer(
        "verification__environment__demands", "verification__environment__manifest"
    )
    return get_object_or_404(rows, pk=pk)


@dataclass(frozen=True, slots=True)
class TraceCost:
    """The solver phase of a traced trial beside its untraced repetitions, in seconds."""

    traced: float
    untraced: float
    n: int


def trace_cost(trial: Trial) -> TraceCost | None:
    """What following this very trial cost; None where it was not, or was never run without."""
    if not trial.is_traced or trial.solver_seconds is None:
        return None
    rows = Trial.objects.filter(
        verification=trial.verification_id, key=trial.key, is_traced=False
    ).exclude(outcome__in=MACHINERY)
    others = [s for s in rows.values_list("solver_seconds", flat=True) if s is not None]
    return TraceCost(trial.solver_seconds, median(others), len(others)) if others else None


def review_rows(environment: Environment) -> list[Review]:
    """All decisions, newest first, with who took which one back."""
    undoing = Review.objects.select_related("reviewer")
    return list(
        Review.objects.filter(environment=environment)
        .select_related("reviewer")
        .prefetch_related(Prefetch("undone_by", queryset=undoing))
        .order_by("-id")
    )


def history_rows(environment: Environment, *, before: int | None, limit: int) -> list[Event]:
    """Events about an environment, newest first."""
    rows = Event.objects.filter(environment=environment).select_related("actor", "step__lineage")
    if before is not None:
        rows = rows.filter(id__lt=before)
    return list(rows.order_by("-id")[:limit])


def neighbours_of(trial: Trial) -> tuple[int | None, int | None]:
    """The trials before and after this one in its verification."""
    rows = Trial.objects.filter(verification=trial.verification_id)
    before = rows.filter(pk__lt=trial.pk).order_by("-pk").values_list("pk", flat=True).first()
    after = rows.filter(pk__gt=trial.pk).order_by("pk").values_list("pk", flat=True).first()
    return before, after
