"""Figures of gates in words, with their intervals."""

from __future__ import annotations

from webapp.presentation.figures import figures_of


def shown(gate: str, figures: dict[str, float]) -> dict[str, tuple[str, str]]:
    return {one.label: (one.text, one.note) for one in figures_of(gate, figures)}


def test_the_mutation_score_has_its_interval_and_n() -> None:
    said = shown("mutants", {"score_at_least": 0.8285, "judged": 20, "noticed": 19})
    assert next(iter(said)) == "Mutation score"
    assert said["Mutation score"] == ("0.95", "0.78 to 1.00 with 90 % confidence, n = 20")
    assert said["Score at least"] == ("83 %", "with 90 % confidence")
    assert "Mutation score" not in shown("mutants", {"judged": 0, "noticed": 0})


def test_a_flake_bound_says_its_confidence() -> None:
    said = shown("oracle", {"runs": 20, "flaky_at_most": 0.1391})
    assert said["Flaky at most"] == ("14 %", "with 95 % confidence")
    nop = shown("nop", {"runs": 10})
    assert nop["Rewarded at most"] == ("26 %", "with 95 % confidence, n = 10")


def test_an_unknown_figure_is_named_by_its_name_and_unit() -> None:
    said = shown("new", {"memory_share": 0.034, "build_seconds": 2.5, "odd_ones": 1234.0})
    assert said == {"Memory": ("3.4 %", ""), "Build": ("2.50 s", ""), "Odd ones": ("1,234", "")}


def test_the_other_number_stands_beside_where_it_differs() -> None:
    runs, failures = figures_of("x", {"runs": 3, "failures": 1}, {"runs": 3, "failures": 0})
    assert not runs.is_other
    assert failures.is_other
    assert failures.beside == "0"
