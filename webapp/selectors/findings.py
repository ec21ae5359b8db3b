"""What the gates found, the gravest first: over an import, or over any set of verifications."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When

from evolution.contracts import GateStatus
from webapp.models import Environment, GateRecord, Verification

ROWS = 200
"""Findings that are listed; all are counted."""


class Severity(IntEnum):
    """How grave a finding is; the lower, the graver."""

    BLOCKING = 0
    CHEATABLE = 1
    NO_SIGNAL = 2
    FLAKY = 3
    STRICTNESS = 4
    WORDING = 5
    UNANSWERED = 6

    @property
    def label(self) -> str:
        """In words."""
        return _LABELS[self]


_LABELS = {
    Severity.BLOCKING: "blocking failure",
    Severity.CHEATABLE: "leak or exploit",
    Severity.NO_SIGNAL: "oracle or no-op",
    Severity.FLAKY: "flaky, or bound to its machine",
    Severity.STRICTNESS: "tests too weak or too strict",
    Severity.WORDING: "wording and novelty",
    Severity.UNANSWERED: "no answer",
}
GATES_BY_SEVERITY = {
    Severity.CHEATABLE: ("leak", "image_leak", "exploits"),
    Severity.NO_SIGNAL: ("oracle", "nop", "build", "format", "demand", "demands"),
    Severity.FLAKY: ("hermetic", "headroom"),
    Severity.STRICTNESS: ("alternatives", "mutants", "parent_solution"),
    Severity.WORDING: ("contract", "sequence", "novel"),
}
_IS_FAILED = Q(status=GateStatus.FAILED)
_IS_FLAKY = Q(gate="oracle", status=GateStatus.PASSED, figures__failures__gt=0)


@dataclass(frozen=True, slots=True)
class Finding:
    """One gate's complaint about one environment."""

    severity: Severity
    record: GateRecord

    @property
    def environment(self) -> Environment:
        """Whose it is."""
        return self.record.verification.environment


def findings(
    verifications: QuerySet[Verification], only: Severity | None = None, limit: int = ROWS
) -> list[Finding]:
    """What failed or was left open there, the gravest first; all, or of `only` one severity."""
    ranked = _ranked(verifications)
    rows = (
        (ranked if only is None else ranked.filter(severity=only))
        .select_related("verification__environment")
        .only(
            *("gate", "status", "reason", "is_blocking", "position", "verification__number"),
            *("verification__environment__name", "verification__environment__title"),
            *("verification__environment__digest", "verification__environment__generation"),
        )
        .order_by("severity", "gate", "verification__environment__name", "pk")
    )
    return [Finding(Severity(row.severity), row) for row in rows[:limit]]


def count_by_severity(verifications: QuerySet[Verification]) -> dict[Severity, int]:
    """How many findings of each severity, gravest first; those that there are."""
    rows = _ranked(verifications).values("severity").annotate(n=Count("pk")).order_by("severity")
    return {Severity(row["severity"]): row["n"] for row in rows}


def _ranked(verifications: QuerySet[Verification]) -> Any:
    """The answers that complain, each with its `severity`."""
    ranks = [
        When(status=GateStatus.INCONCLUSIVE, then=Value(Severity.UNANSWERED.value)),
        When(is_blocking=True, status=GateStatus.FAILED, then=Value(Severity.BLOCKING.value)),
        When(_IS_FLAKY, then=Value(Severity.FLAKY.value)),
        *(
            When(gate__in=gates, then=Value(severity.value))
            for severity, gates in GATES_BY_SEVERITY.items()
        ),
    ]
    return GateRecord.objects.filter(
        _IS_FAILED | Q(status=GateStatus.INCONCLUSIVE) | _IS_FLAKY,
        verification__in=verifications.order_by().values("pk"),
    ).annotate(
        severity=Case(*ranks, default=Value(Severity.WORDING.value), output_field=IntegerField())
    )
