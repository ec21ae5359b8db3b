"""Triage: what an environment is that nobody has passed."""

from __future__ import annotations

from collections.abc import Iterable

from evolution.agents import briefing
from evolution.agents.answers import Diagnosis
from evolution.agents.asking import GaveUp, Question, ask
from evolution.agents.judge import is_quoted
from evolution.agents.means import Means
from evolution.agents.trimming import quoted
from evolution.bundle import Bundle
from evolution.llm.calls import Role
from evolution.prompts import prompt

PROMPT = prompt("triage", "house")
MOST_TRIALS = 12


def triage(
    means: Means, place: str, bundle: Bundle, told: Iterable[tuple[str, str]]
) -> Diagnosis | GaveUp:
    """Say what it is, from its files and what is told of each attempt (who made it, how it ended).

    The quote stands in the material.
    """
    bounds = means.bounds
    shown = list(told)[:MOST_TRIALS]
    attempts = [
        quoted(f"attempt {number} by {name}", text, bounds.result // 2)
        for number, (name, text) in enumerate(shown, 1)
    ]
    material = "\n\n".join(
        (
            quoted("instruction.md", bundle.instruction, bounds.file),
            *attempts,
            briefing.listing(bundle, bounds),
            briefing.subject_files(bundle, bounds),
        )
    )

    def check(answer: Diagnosis) -> str | None:
        if answer.kind == "unclear" or is_quoted(answer.quote, material):
            return None
        return "the quote is not in the material, copy it exactly"

    return ask(
        means.models,
        Question(Role.TRIAGE, place, PROMPT, material, Diagnosis, (), means.turns.judge, check),
        bounds,
    )
