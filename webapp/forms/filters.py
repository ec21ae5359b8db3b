"""Filters from query strings: checked, then plain values for the selectors."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from evolution.contracts import GateStatus
from evolution.directions import Aspect, Direction
from evolution.gates.protocol import GATES
from webapp.lifecycle import ReviewStatus, VerificationStatus
from webapp.selectors.environments import EnvironmentFilter


def _choices(values: Any, empty: str) -> list[tuple[str, str]]:
    return [("", empty), *((str(v), str(v).replace("_", " ")) for v in values)]


class EnvironmentFilterForm(forms.Form):
    """The filters of the table of environments; nonsense in one field empties that field only."""

    text = forms.CharField(required=False, max_length=100, label="Text")
    verification = forms.ChoiceField(
        required=False, choices=_choices(VerificationStatus.values, "any verdict")
    )
    review = forms.ChoiceField(required=False, choices=_choices(ReviewStatus.values, "any review"))
    generation = forms.IntegerField(required=False, min_value=0, max_value=1_000)
    direction = forms.ChoiceField(required=False, choices=_choices(Direction, "any direction"))
    aspect = forms.ChoiceField(required=False, choices=_choices(Aspect, "any aspect"))
    operator = forms.CharField(required=False, max_length=60)
    lineage = forms.IntegerField(required=False, min_value=1, max_value=2**62)
    run = forms.IntegerField(required=False, min_value=1, max_value=2**62)
    gate = forms.ChoiceField(
        required=False, choices=_choices(GATES, "any gate"), label="Failed at gate"
    )
    answer = forms.ChoiceField(required=False, choices=_choices(GateStatus, "failed"))
    imported = forms.IntegerField(required=False, min_value=1, max_value=2**62)


def read_filter(query: QueryDict) -> EnvironmentFilter:
    """The filter that a query string asks for; fields that make no sense are left out."""
    form = EnvironmentFilterForm(query)
    form.is_valid()
    given = {k: v for k, v in form.cleaned_data.items() if v not in ("", None)}
    if "text" in given:
        given["text"] = given["text"].replace("\0", "")
    return EnvironmentFilter(**given)


def read_key(query: QueryDict, name: str) -> int | None:
    """A positive row number from a query string; None when it is missing or nonsense."""
    value = query.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None
