"""The figures of a gate as a person reads them: named, with unit, n and interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evolution.difficulty.posterior import lower_bound, upper_bound

LABELS = {
    "runs": "Fresh sandboxes",
    "passed": "With full reward",
    "failures": "Without",
    "flaky_at_most": "Flaky at most",
    "states": "Different states left",
    "score_at_least": "Score at least",
    "judged": "Mutants judged",
    "noticed": "Noticed",
    "equivalent": "Equivalent, not counted",
    "repeated": "Repeated, not counted",
    "without_result": "Without a result",
    "silent_checks": "Checks that notice none",
    "tried": "Cheats tried",
    "rewarded": "Rewarded",
    "inconclusive": "Without an answer",
    "not_possible": "Not possible here",
    "bite": "Demands that bite",
    "total": "Live demands",
    "kept": "Kept of the parent",
    "nearest": "Nearest other",
}
"""In the order in which they are shown; the store keeps none."""
NOTES = {
    "flaky_at_most": "with 95 % confidence",
    "score_at_least": "with 90 % confidence",
}
_SHARES = ("_share", "_at_most", "_at_least")
_ALSO_SHARES = ("kept", "nearest")


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number in words. `note` says its interval, confidence or n; `beside` the other's."""

    label: str
    text: str
    note: str = ""
    beside: str = ""

    @property
    def is_other(self) -> bool:
        """Whether the matrix beside says another number."""
        return bool(self.beside) and self.beside != self.text


def figures_of(
    gate: str, figures: Mapping[str, float], beside: Mapping[str, float] | None = None
) -> tuple[Figure, ...]:
    """What a gate counted, the derived rates first; beside another answer of the same gate."""
    other = {one.label: one.text for one in _all(gate, beside)} if beside else {}
    return tuple(
        Figure(one.label, one.text, one.note, other.get(one.label, ""))
        for one in _all(gate, figures)
    )


def _all(gate: str, figures: Mapping[str, float]) -> list[Figure]:
    names = [name for name in LABELS if name in figures]
    names += [name for name in figures if name not in LABELS]
    return [*_derived(gate, figures), *(_plain(name, figures[name]) for name in names)]


def _derived(gate: str, figures: Mapping[str, float]) -> list[Figure]:
    """Rates that follow from the counts, where the gate has not said them itself."""
    runs, judged = int(figures.get("runs", 0)), int(figures.get("judged", 0))
    if gate == "mutants" and judged:
        noticed = int(figures.get("noticed", 0))
        low, high = (bound(noticed, judged, 0.95) for bound in (lower_bound, upper_bound))
        note = f"{low:.2f} to {high:.2f} with 90 % confidence, n = {judged}"
        return [Figure("Mutation score", f"{noticed / judged:.2f}", note)]
    if gate == "nop" and runs:
        note = f"with 95 % confidence, n = {runs}"
        return [Figure("Rewarded at most", _share(upper_bound(0, runs, 0.95)), note)]
    return []


def _plain(name: str, value: float) -> Figure:
    label = LABELS.get(name) or name.replace("_", " ").capitalize()
    if name.endswith(_SHARES) or name in _ALSO_SHARES:
        return Figure(label.removesuffix(" share"), _share(value), NOTES.get(name, ""))
    if name.endswith("_seconds"):
        return Figure(label.removesuffix(" seconds"), f"{value:.2f} s")
    return Figure(label, f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}")


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= 0.1 or not value else f"{100 * value:.1f} %"
