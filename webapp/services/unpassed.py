"""Attempts at an environment that nobody has passed: what a triage is shown."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from evolution.gates.answers import last_lines, say
from sandbox.contracts import Outcome
from webapp.models import Environment, MeasuredTrial, SolverKind, Trial
from webapp.services.trials import unpack_result
from webapp.services.verifications import answered_by
from webapp.store import load_packed

MOST_REFERENCE = 3
"""How many of those by its own solution are told."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How many attempts by solvers there are, how many passed; and those of the solution."""

    made: int
    passed: int
    reference: int
    reference_passed: int

    @property
    def refusal(self) -> str:
        """Why there is nothing to diagnose, in one line; empty where nobody passes."""
        if self.passed:
            return f"{self.passed} of {self.made} attempts have passed"
        if self.made or self.reference > self.reference_passed:
            return ""
        if self.reference:
            return "nobody has tried it but its own solution, which passes: measure it first"
        return "nobody has tried it: verify or measure it first"


def attempts_at(environment: Environment) -> Attempts:
    """How attempts at an environment ended, in figures."""
    found = _measured(environment).aggregate(
        made=Count("id"), passed=Count("id", filter=Q(is_passed=True))
    )
    own = list(_reference(environment).values_list("outcome", flat=True))
    return Attempts(
        made=found["made"],
        passed=found["passed"],
        reference=len(own),
        reference_passed=own.count(Outcome.PASS),
    )


def told_attempts(environment: Environment, most: int) -> list[tuple[str, str]]:
    """Up to `most` attempts with who made them and how they ended, as a triage is told.

    Solvers' come the newest first. Raises CorruptStore.
    """
    told = []
    for trial in _reference(environment)[:MOST_REFERENCE]:
        result = unpack_result(bytes(trial.record))
        lines = (say(result), last_lines(result.solver_output), last_lines(result.verifier_output))
        told.append(("its own reference solution", "\n".join(filter(None, lines))))
    for row in _measured(environment).select_related("solver").order_by("-pk")[:most]:
        output = load_packed(row.output_digest) if row.output_digest else b""
        told.append((row.solver.name, f"{_ended(row)}\n{last_lines(output)}".strip()))
    return told[:most]


def _ended(row: MeasuredTrial) -> str:
    reward = "no reward" if row.reward is None else f"reward {row.reward:g}"
    counts = "" if row.counts else "; the machinery broke"
    return f"{reward}{f'; ended by {row.cause}' if row.cause else ''}{counts}"


def _measured(environment: Environment) -> QuerySet[MeasuredTrial]:
    return environment.measured.exclude(solver__kind=SolverKind.SIMULATED)


def _reference(environment: Environment) -> QuerySet[Trial]:
    """The trials of its own solution that the verdict rests on."""
    verification = environment.current_verification
    if verification is None:
        return Trial.objects.none()
    source = answered_by(verification, "oracle")
    return source.trials.filter(solver="oracle").order_by("pk")
