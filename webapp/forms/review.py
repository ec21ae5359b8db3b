"""A reviewer's decision."""

from __future__ import annotations

from django import forms

from webapp.models.review import REASON_LABELS, ReviewVerdict

DECISIONS = (ReviewVerdict.APPROVED, ReviewVerdict.CHANGES_REQUESTED, ReviewVerdict.REJECTED)


class ReviewForm(forms.Form):
    """Verdict, reasons, comment, and the digest that was on the screen."""

    digest = forms.CharField(max_length=64)
    verdict = forms.ChoiceField(
        choices=[(v.value, v.label) for v in DECISIONS],
        error_messages={"required": "Choose approve, changes or reject."},
    )
    reasons = forms.MultipleChoiceField(required=False, choices=list(REASON_LABELS.items()))
    comment = forms.CharField(required=False, max_length=10_000)

    def clean(self) -> None:
        """Reject and changes need a reason; an approval drops reasons chosen before."""
        super().clean()
        verdict = self.cleaned_data.get("verdict")
        reasons = self.cleaned_data.get("reasons", [])
        if verdict == ReviewVerdict.APPROVED:
            self.cleaned_data["reasons"] = []
        elif verdict and not reasons and "reasons" not in self.errors:
            self.add_error("reasons", "Choose at least one reason.")
        elif "other" in reasons and not self.cleaned_data.get("comment", "").strip():
            self.add_error("comment", "Say in the comment what the other reason is.")
