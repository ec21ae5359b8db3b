"""Trials that were measured elsewhere, stored beside the environments they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from evolution.trials_csv import ImportedTrial
from webapp.models import Environment, MeasuredTrial, Solver, SolverKind
from webapp.services.difficulty import refresh_measured
from webapp.services.events import append_event

BATCH = 1000


@dataclass(frozen=True, slots=True)
class ImportCount:
    """What an import of trials came to: stored, known before, matched to an environment."""

    stored: int
    known: int
    matched: int


def import_trials(rows: Iterable[ImportedTrial], *, source: str) -> ImportCount:
    """Store trials once each; those of unknown environments wait until one of that name comes."""
    environments = environments_by_name()
    solvers: dict[str, Solver] = {}
    touched: dict[int, Environment] = {}
    fresh: list[MeasuredTrial] = []
    total = 0
    with transaction.atomic():
        before = MeasuredTrial.objects.count()
        for row in rows:
            total += 1
            environment = environments.get(row.task)
            if environment is not None:
                touched[environment.pk] = environment
            fresh.append(_trial(row, _solver(row.solver, solvers), environment, source))
            if len(fresh) >= BATCH:
                _save(fresh)
        _save(fresh)
        stored = MeasuredTrial.objects.count() - before
        refresh_measured(touched.values())
        append_event("trials.imported", f"{stored} trials from {source}")
    matched = MeasuredTrial.objects.filter(source=source, environment__isnull=False).count()
    return ImportCount(stored, total - stored, matched)


def environments_by_name() -> dict[str, Environment]:
    """The seeds, by their name and by its last part."""
    found: dict[str, Environment] = {}
    for environment in Environment.objects.filter(parent=None).order_by("-pk"):
        found[environment.name] = environment
        found[environment.name.rsplit("/", 1)[-1]] = environment
    return found


def _solver(name: str, known: dict[str, Solver]) -> Solver:
    if name not in known:
        known[name], _ = Solver.objects.get_or_create(
            name=name, defaults={"kind": SolverKind.IMPORTED}
        )
    return known[name]


def _trial(
    row: ImportedTrial, solver: Solver, environment: Environment | None, source: str
) -> MeasuredTrial:
    return MeasuredTrial(
        solver=solver,
        environment=environment,
        environment_name=row.task,
        number=row.trial,
        is_passed=row.is_passed,
        counts=row.counts,
        cause=row.cause,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        seconds=row.seconds,
        source=source,
    )


def _save(fresh: list[MeasuredTrial]) -> None:
    MeasuredTrial.objects.bulk_create(fresh, ignore_conflicts=True)
    fresh.clear()
