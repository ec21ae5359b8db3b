"""A new evolution run."""

from __future__ import annotations

from django import forms

from evolution.directions import Direction, Effort
from webapp.models import Lineage


class RunForm(forms.Form):
    """What a run evolves, how far, how wide, and from which seed of randomness."""

    name = forms.CharField(
        required=False, max_length=200, help_text="Left empty, a name is made from the figures."
    )
    lineages = forms.ModelMultipleChoiceField(
        queryset=Lineage.objects.order_by("name"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one lineage."},
    )
    generations = forms.IntegerField(min_value=1, max_value=50, initial=3)
    children = forms.IntegerField(
        min_value=1, max_value=4, initial=2, help_text="Steps per lineage and generation."
    )
    directions = forms.MultipleChoiceField(
        required=False,
        choices=[(d.value, d.value) for d in Direction],
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen: all three, in a seeded random order.",
    )
    effort = forms.ChoiceField(
        choices=[
            (Effort.LOW.value, "low: one pair"),
            (Effort.HIGH.value, "high: one contiguous span"),
            (Effort.MAX.value, "max: anything"),
        ],
        initial=Effort.LOW.value,
    )
    seed = forms.IntegerField(
        min_value=0, max_value=2**53, initial=0, help_text="Equal seeds give equal digests."
    )
