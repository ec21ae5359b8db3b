"""A new evolution run."""

from __future__ import annotations

from django import forms

from evolution.directions import Direction, Effort
from evolution.llm.budget import Limits
from webapp.models import Lineage
from webapp.services.errors import InvalidInput


def _usd(what: str) -> forms.FloatField:
    return forms.FloatField(required=False, min_value=0.0001, max_value=1e6, label=f"{what} in USD")


def _tokens(what: str) -> forms.IntegerField:
    return forms.IntegerField(
        required=False, min_value=1, max_value=2**53, label=f"{what} in tokens"
    )


def _seconds(what: str) -> forms.FloatField:
    return forms.FloatField(required=False, min_value=1, max_value=1e8, label=f"{what} in seconds")


class BudgetForm(forms.Form):
    """What a run's models may take together; a field left empty limits nothing."""

    budget_usd = _usd("Budget")
    budget_tokens = _tokens("Budget")
    budget_seconds = _seconds("Budget")

    @property
    def budget(self) -> Limits:
        """The limits that were given, once the form is valid."""
        said = self.cleaned_data
        return Limits(said["budget_usd"], said["budget_tokens"], said["budget_seconds"])

    def given(self) -> Limits:
        """The limits that were given. Raises InvalidInput, naming the first field that is wrong."""
        if not self.is_valid():
            field, lines = next(iter(self.errors.items()))
            raise InvalidInput(f"{self.fields[field].label}: {lines[0]}", field)
        return self.budget


class RunForm(BudgetForm):
    """What a run evolves, how far, how wide, and from which seed of randomness."""

    step_usd = _usd("Each step")
    step_tokens = _tokens("Each step")
    step_seconds = _seconds("Each step")

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
    author = forms.ChoiceField(
        choices=[("procedural", "procedural: operators and rules"), ("llm", "llm: models")],
        initial="procedural",
        required=False,
        help_text="Models need a budget; the run rests when it is used up.",
    )
    seed = forms.IntegerField(
        min_value=0, max_value=2**53, initial=0, help_text="Equal seeds give equal digests."
    )

    @property
    def step_budget(self) -> Limits:
        """What each step may take for itself, once the form is valid."""
        said = self.cleaned_data
        return Limits(said["step_usd"], said["step_tokens"], said["step_seconds"])

    @property
    def steps(self) -> int:
        """How many steps there are at most, once the form is valid."""
        said = self.cleaned_data
        return len(said["lineages"]) * int(said["generations"]) * int(said["children"])
