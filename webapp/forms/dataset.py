"""Freezing a dataset version."""

from __future__ import annotations

from django import forms


class FreezeForm(forms.Form):
    """A name (an existing one makes its next version), notes, and the chosen members."""

    name = forms.CharField(max_length=100, help_text="An existing name makes its next version.")
    notes = forms.CharField(
        required=False, max_length=5_000, widget=forms.Textarea(attrs={"rows": 2})
    )
    environments = forms.TypedMultipleChoiceField(
        coerce=int, error_messages={"required": "Choose at least one environment."}
    )

    def offer(self, ids: list[int]) -> None:
        """Name the environments that may be chosen."""
        field = self.fields["environments"]
        assert isinstance(field, forms.TypedMultipleChoiceField)
        field.choices = [(pk, str(pk)) for pk in ids]
