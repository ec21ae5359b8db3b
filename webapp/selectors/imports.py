"""Imports: the list, the funnel that always adds up, what was refused and why."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.shortcuts import get_object_or_404

from evolution.contracts import GateStatus
from webapp.lifecycle import VerificationStatus
from webapp.models import (
    Environment,
    GateRecord,
    Import,
    ImportEntry,
    ImportOutcome,
    Verification,
)

_REFUSED = Q(outcome=ImportOutcome.REFUSED)
_VALID = Q(verification=VerificationStatus.VALID)
_OPEN = Q(verification__in=[VerificationStatus.PENDING, VerificationStatus.VERIFYING])
_ERRORED = Q(verification=VerificationStatus.ERRORED)


@dataclass(frozen=True, slots=True)
class Stage:
    """One number of the funnel: those that got so far, and in words what became of the others.

    `query` is the query string of the table of environments that shows them; empty where there is
    none. `width` is a percentage of what was found.
    """

    label: str
    count: int
    lost: str
    query: str
    width: float
    title: str


def list_imports() -> QuerySet[Import]:
    """Imports, newest first, each with how much it found and refused."""
    return Import.objects.annotate(
        found=Count("entries"),
        refused=Count("entries", filter=Q(entries__outcome=ImportOutcome.REFUSED)),
        new=Count("entries", filter=Q(entries__outcome=ImportOutcome.IMPORTED)),
    ).order_by("-pk")


def get_import(pk: int) -> Import:
    """The import with its counts, or 404."""
    return get_object_or_404(list_imports(), pk=pk)


def environments_of(batch: Import) -> QuerySet[Environment]:
    """The seeds of an import: new ones, and known ones that it found again."""
    return Environment.objects.filter(Exists(batch.entries.filter(environment=OuterRef("pk"))))


def verdicts_of(batch: Import) -> QuerySet[Verification]:
    """The verifications on which the verdicts of an import's seeds rest."""
    current = environments_of(batch).exclude(current_verification=None)
    return Verification.objects.filter(pk__in=current.values("current_verification"))


def refusals_of(batch: Import) -> QuerySet[ImportEntry]:
    """What was not taken, in the order in which it was found."""
    return batch.entries.filter(_REFUSED)


def noted_of(batch: Import) -> QuerySet[ImportEntry]:
    """What was taken with a word on it."""
    return batch.entries.exclude(notes=[]).select_related("environment")


def funnel_of(batch: Import) -> tuple[Stage, ...]:
    """Found, well-formed, seeds, runnable, verified: each is a part of the one before it."""
    entries = batch.entries.aggregate(
        found=Count("pk"),
        refused=Count("pk", filter=_REFUSED),
        known=Count("pk", filter=Q(outcome=ImportOutcome.KNOWN)),
        seeds=Count("environment", distinct=True),
    )
    built = GateRecord.objects.filter(
        verification=OuterRef("current_verification"), gate="build", status=GateStatus.PASSED
    )
    is_built = Q(Exists(built))
    seeds = environments_of(batch).aggregate(
        runnable=Count("pk", filter=is_built),
        valid=Count("pk", filter=is_built & _VALID),
        waiting=Count("pk", filter=_OPEN & ~is_built),
        again=Count("pk", filter=_OPEN & is_built),
        lost=Count("pk", filter=_ERRORED & ~is_built),
        unclear=Count("pk", filter=_ERRORED & is_built),
    )
    found, well_formed = entries["found"], entries["found"] - entries["refused"]
    stuck = entries["seeds"] - seeds["runnable"] - seeds["waiting"] - seeds["lost"]
    failed = seeds["runnable"] - seeds["valid"] - seeds["again"] - seeds["unclear"]
    table = f"imported={batch.pk}"
    rows = (
        ("found", found, "", "", "Everything that looked like an environment"),
        ("well-formed", well_formed, _said((entries["refused"], "refused")), "", "Could be read"),
        (
            *("seeds", entries["seeds"]),
            _said((well_formed - entries["seeds"], "the same as another")),
            *(table, "Different bundles in the store"),
        ),
        (
            *("runnable", seeds["runnable"]),
            _said(
                (stuck, "do not build"),
                (seeds["lost"], "inconclusive"),
                (seeds["waiting"], "not verified yet"),
            ),
            *(f"{table}&gate=build&answer=passed", "Their images build here"),
        ),
        (
            *("verified", seeds["valid"]),
            _said(
                (failed, "invalid"),
                (seeds["unclear"], "inconclusive"),
                (seeds["again"], "under way"),
            ),
            *(f"{table}&verification=valid", "All blocking gates passed"),
        ),
    )
    return tuple(
        Stage(label, count, lost, query, 100 * count / max(1, found), title)
        for label, count, lost, query, title in rows
    )


def _said(*parts: tuple[int, str]) -> str:
    """The parts that there are, in words."""
    return ", ".join(f"{count:,} {words}" for count, words in parts if count)
