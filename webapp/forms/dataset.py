"""Freezing a dataset version."""

from __future__ import annotations

from django import forms


class FreezeForm(forms.Form):
    """A name (an existing one makes its next version), notes, and the chosen members.

    `is_all` takes everything that matches the filters, also what is not listed on the page.
    """

    name = forms.CharField(max_length=100, help_text="An existing name makes its next version.")
    notes = forms.CharField(
        required=False, max_length=5_000, widget=forms.Textarea(attrs={"rows": 2})
    )
    offered: list[int] = []
    """What may be chosen."""

    is_all = forms.BooleanField(required=False)
    environments = forms.TypedMultipleChoiceField(coerce=int, required=False)

    def offer(self, ids: list[int]) -> None:
        """Name the environments that may be chosen."""
        self.offered = ids
        field = self.fields["environments"]
        assert isinstance(field, forms.TypedMultipleChoiceField)
        field.choices = [(pk, str(pk)) for pk in ids]

    def clean(self) -> None:
        """At least one member, or all that match."""
        super().clean()
        if self.cleaned_data.get("is_all"):
            self.cleaned_data["environments"] = self.offered
        elif not self.cleaned_data.get("environments") and "environments" not in self.errors:
            self.add_error("environments", "Choose at least one environment.")
