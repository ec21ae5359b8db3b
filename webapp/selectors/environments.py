"""The table of environments: filters, keyset pages, facet counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from evolution.contracts import GateStatus
from webapp.models import Environment, EvolutionRun, GateRecord, ImportEntry, Lineage

PAGE_ROWS = 50
COUNT_CAP = 10_000
"""Counts are exact up to here."""

LIST_FIELDS = (
    *("id", "name", "title", "digest", "generation", "kind", "direction", "aspect", "effect"),
    *("operator", "notch", "repair", "verification", "review", "failure", "demands_live"),
    *("demands_bite", "d_t", "created_at", "parent_id", "lineage_id", "run_id", "path"),
)
"""What a row of a table needs; the heavy columns stay where they are."""

FACETS = (
    *("verification", "review", "generation", "direction", "aspect", "operator"),
    *("lineage_id", "run_id"),
)


@dataclass(frozen=True, slots=True)
class EnvironmentFilter:
    """What to show; empty fields do not filter.

    `gate` is one that failed, or that gave the `answer`; `imported` is the number of an import.
    """

    verification: str = ""
    review: str = ""
    generation: int | None = None
    direction: str = ""
    aspect: str = ""
    operator: str = ""
    lineage: int | None = None
    run: int | None = None
    gate: str = ""
    answer: str = ""
    imported: int | None = None
    text: str = ""

    def query(self) -> Q:
        """The condition that the database understands."""
        condition = Q()
        for field in ("verification", "review", "direction", "aspect", "operator"):
            if value := getattr(self, field):
                condition &= Q(**{field: value})
        for field in ("generation", "lineage", "run"):
            if (number := getattr(self, field)) is not None:
                condition &= Q(**{field: number})
        if self.gate:
            answers = GateRecord.objects.filter(
                verification=OuterRef("current_verification"),
                gate=self.gate,
                status=self.answer or GateStatus.FAILED,
            )
            condition &= Q(Exists(answers))
        if self.imported is not None:
            entries = ImportEntry.objects.filter(batch=self.imported, environment=OuterRef("pk"))
            condition &= Q(Exists(entries))
        if self.text:
            condition &= _matches(self.text)
        return condition

    def without(self, field: str) -> EnvironmentFilter:
        """The same filter with one field empty."""
        empty: Any = getattr(EnvironmentFilter(), field)
        return replace(self, **{field: empty})

    @property
    def is_empty(self) -> bool:
        """Whether nothing is filtered."""
        return self == EnvironmentFilter()


def _matches(text: str) -> Q:
    found = Q(name__icontains=text) | Q(title__icontains=text) | Q(instruction__icontains=text)
    if 4 <= len(text) <= 64 and all(c in "0123456789abcdef" for c in text.lower()):
        found |= Q(digest__startswith=text.lower())
    return found


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, newest first; `before` and `after` are the keys of the neighbouring pages."""

    rows: tuple[Environment, ...]
    before: int | None
    after: int | None
    count: int

    @property
    def count_text(self) -> str:
        """The number of matches, or that there are more than are counted."""
        return f"{self.count:,}" if self.count <= COUNT_CAP else f"{COUNT_CAP:,}+"


def list_rows() -> QuerySet[Environment]:
    """Environments with what a table row needs, nothing heavy."""
    return Environment.objects.only(*LIST_FIELDS).order_by("-id")


def page_of(
    chosen: EnvironmentFilter, *, before: int | None = None, after: int | None = None
) -> Page:
    """One page of matches: those older than `before`, or those newer than `after`."""
    matches = Environment.objects.filter(chosen.query())
    rows = list_rows().filter(chosen.query())
    if after is not None:
        window = list(rows.filter(id__gt=after).order_by("id")[: PAGE_ROWS + 1])
        has_newer, has_older = len(window) > PAGE_ROWS, True
        shown = window[:PAGE_ROWS][::-1]
    else:
        older = rows if before is None else rows.filter(id__lt=before)
        shown = list(older[: PAGE_ROWS + 1])
        has_newer, has_older = before is not None, len(shown) > PAGE_ROWS
        shown = shown[:PAGE_ROWS]
    return Page(
        tuple(shown),
        before=shown[-1].pk if shown and has_older else None,
        after=shown[0].pk if shown and has_newer else None,
        count=matches.values("id")[: COUNT_CAP + 1].count(),
    )


@dataclass(frozen=True, slots=True)
class FacetValue:
    """One choice of a facet, with how many environments it would show."""

    name: str
    value: str
    label: str
    count: int
    is_chosen: bool

    @property
    def added(self) -> dict[str, str | None]:
        """What a query string becomes when this value is chosen."""
        return {self.name: self.value, "before": None, "after": None}

    @property
    def removed(self) -> dict[str, str | None]:
        """What a query string becomes when this filter is taken away."""
        return {self.name: None, "before": None, "after": None}


@dataclass(frozen=True, slots=True)
class Facet:
    """One thing to filter by. `name` is the query parameter."""

    name: str
    title: str
    values: tuple[FacetValue, ...]
    is_chosen: bool


_TITLES = {
    "verification": "Verdict",
    "review": "Review",
    "generation": "Generation",
    "direction": "Direction",
    "aspect": "Aspect",
    "operator": "Operator",
    "lineage_id": "Lineage",
    "run_id": "Run",
}


def facets(chosen: EnvironmentFilter) -> tuple[Facet, ...]:
    """Counts per value, each facet with the other filters applied (newest 10,000 matches)."""
    counts = _facet_counts(chosen)
    labels = {
        "lineage_id": _names(Lineage, counts["lineage_id"]),
        "run_id": _names(EvolutionRun, counts["run_id"]),
    }
    return tuple(
        _facet(column, counts[column], labels.get(column, {}), chosen) for column in FACETS
    )


def _facet_counts(chosen: EnvironmentFilter) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    open_columns = [c for c in FACETS if getattr(chosen, _parameter(c)) in ("", None)]
    base = Environment.objects.filter(chosen.query()).order_by("-id")
    rows = list(base.values_list(*open_columns)[:COUNT_CAP]) if open_columns else []
    for index, column in enumerate(open_columns):
        counts[column] = Counter(_key(row[index]) for row in rows)
    for column in FACETS:
        if column not in counts:
            others = Environment.objects.filter(chosen.without(_parameter(column)).query())
            values = others.order_by("-id").values_list(column, flat=True)[:COUNT_CAP]
            counts[column] = Counter(_key(value) for value in values)
    return counts


def _parameter(column: str) -> str:
    return column.removesuffix("_id")


def _key(value: object) -> str:
    return "" if value is None else str(value)


def _names(model: type[Lineage] | type[EvolutionRun], keys: Iterable[str]) -> dict[str, str]:
    ids = [int(key) for key in keys if key]
    return {str(row.pk): row.name for row in model._default_manager.filter(pk__in=ids).only("name")}


def _facet(
    column: str, counts: Counter[str], labels: Mapping[str, str], chosen: EnvironmentFilter
) -> Facet:
    current = _key(getattr(chosen, _parameter(column)))
    ordered = sorted(
        (value for value in counts if value),
        key=(lambda v: (int(v),)) if column == "generation" else (lambda v: (-counts[v], v)),
    )
    values = tuple(
        FacetValue(
            _parameter(column), v, labels.get(v, v).replace("_", " "), counts[v], v == current
        )
        for v in ordered
    )
    return Facet(_parameter(column), _TITLES[column], values, bool(current))
