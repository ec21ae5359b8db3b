"""Attempts by real solvers that were followed: those of Harbor's jobs, and those made here."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from django.db import transaction
from django.db.models import Max, QuerySet

from evolution.harbor_jobs import HarborTrial
from evolution.plain_text import plain
from webapp.models import Environment, MeasuredTrial, Solver, SolverKind
from webapp.services.difficulty import refresh_measured
from webapp.services.events import append_event
from webapp.services.measurements import ImportCount, environments_by_name
from webapp.store import save_packed

NAME_CAP, SOURCE_CAP = 200, 200


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as it is kept. `counts` is False where it says nothing of the environment."""

    is_passed: bool
    counts: bool
    source: str
    cause: str = ""
    reward: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    trajectory: bytes = b""
    cast: bytes = b""
    output: bytes = b""


def measured_name(environment: Environment) -> str:
    """How attempts name an environment: children share their seed's name, and are told apart."""
    if environment.is_seed:
        return environment.name[:NAME_CAP]
    return f"{environment.name[: NAME_CAP - 9]} {environment.short_digest}"


def next_number(solver: Solver, name: str) -> int:
    """The number after the last attempt of a solver at an environment."""
    return (_of(solver, name).aggregate(last=Max("number"))["last"] or 0) + 1


def open_numbers(solver: Solver, name: str, count: int) -> list[int]:
    """The lowest numbers that are free: an attempt that was broken off goes on before a new one.

    Its answers, which are paid for, are found by its number.
    """
    taken = set(_of(solver, name).values_list("number", flat=True))
    return list(islice((number for number in itertools.count(1) if number not in taken), count))


def _of(solver: Solver, name: str) -> QuerySet[MeasuredTrial]:
    return MeasuredTrial.objects.filter(solver=solver, environment_name=name)


def find_solver(name: str, kind: SolverKind) -> Solver:
    """The solver of that name, stored when it is new."""
    return Solver.objects.get_or_create(name=plain(name)[:NAME_CAP], defaults={"kind": kind})[0]


def record_attempt(
    solver: Solver, environment: Environment | None, name: str, number: int, attempt: Attempt
) -> MeasuredTrial | None:
    """Keep an attempt and count it; None when one of that number is there already."""
    row, is_new = MeasuredTrial.objects.get_or_create(
        solver=solver,
        environment_name=name,
        number=number,
        defaults={
            "environment": environment,
            "is_passed": attempt.is_passed,
            "counts": attempt.counts,
            "cause": attempt.cause[:60],
            "input_tokens": attempt.input_tokens,
            "output_tokens": attempt.output_tokens,
            "usd": attempt.usd,
            "reward": attempt.reward,
            "seconds": attempt.seconds,
            "trajectory_digest": _kept(attempt.trajectory),
            "cast_digest": _kept(attempt.cast),
            "output_digest": _kept(attempt.output),
            "source": attempt.source[:SOURCE_CAP],
        },
    )
    if is_new and environment is not None:
        refresh_measured([environment])
    return row if is_new else None


def import_jobs(trials: Iterable[HarborTrial]) -> ImportCount:
    """Store the trials of Harbor's jobs, once each, beside the environments they were made with.

    An environment is found by the content digest of the task, else by a seed's name.
    """
    by_name = environments_by_name()
    stored = known = matched = 0
    for trial in trials:
        source = plain(f"harbor {trial.source}")[:SOURCE_CAP]
        with transaction.atomic():
            seen = MeasuredTrial.objects.filter(source=source).first()
            environment = _environment(trial, by_name)
            matched += environment is not None
            if seen is not None:
                known += 1
                continue
            solver = find_solver(trial.solver, SolverKind.HARBOR)
            name = measured_name(environment) if environment else trial.task[:NAME_CAP]
            attempt = Attempt(
                is_passed=trial.is_passed,
                counts=trial.counts,
                source=source,
                cause=trial.cause,
                reward=trial.reward,
                input_tokens=trial.input_tokens,
                output_tokens=trial.output_tokens,
                usd=trial.usd,
                seconds=trial.seconds,
                trajectory=trial.trajectory,
                cast=trial.cast,
                output=trial.output,
            )
            record_attempt(solver, environment, name, next_number(solver, name), attempt)
            stored += 1
    append_event("trials.imported", f"{stored} trials of Harbor")
    return ImportCount(stored, known, matched)


def _environment(trial: HarborTrial, by_name: dict[str, Environment]) -> Environment | None:
    if trial.harbor_digest:
        rows = Environment.objects.filter(harbor_digest=trial.harbor_digest)
        found = rows.order_by("generation", "pk").first()
        if found is not None:
            return found
    return by_name.get(trial.task)


def _kept(data: bytes) -> str:
    return save_packed(data) if data else ""
