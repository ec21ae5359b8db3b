"""The Rubric Judge and the judge of claimed exploits: rulings with a quote that can be checked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evolution.agents import briefing
from evolution.agents.answers import ExploitRuling, Ruling, Rulings
from evolution.agents.asking import GaveUp, Question, ask
from evolution.agents.means import Means
from evolution.agents.rubrics import Rubric
from evolution.agents.trimming import quoted
from evolution.bundle import Bundle
from evolution.contracts import Demand
from evolution.llm.calls import Role
from evolution.prompts import prompt

PROMPT = prompt("judge", "house")
EXPLOIT_PROMPT = prompt("exploit_judge")
SHORTEST_QUOTE = 8
_SPACE = re.compile(r"\s+")


def judge_rubrics(
    means: Means, place: str, bundle: Bundle, demand: Demand, rubrics: Sequence[Rubric]
) -> tuple[Ruling, ...] | GaveUp:
    """One ruling per rubric; every one against the environment with a quote that is there."""
    bounds = means.bounds
    material = "\n\n".join(
        (
            quoted("instruction.md", bundle.instruction, bounds.file),
            quoted("the new demand", _told(demand), bounds.listing),
            briefing.listing(bundle, bounds),
            briefing.subject_files(bundle, bounds),
        )
    )
    asked = "\n".join(f"- `{rubric.name}`: {rubric.text}" for rubric in rubrics)
    names = [rubric.name for rubric in rubrics]

    def check(answer: Rulings) -> str | None:
        given = [ruling.rubric for ruling in answer.rulings]
        if sorted(given) != sorted(names):
            return f"answer each of {', '.join(names)} exactly once"
        for ruling in answer.rulings:
            if not ruling.passed and not is_quoted(ruling.quote, material):
                return f"{ruling.rubric}: the quote is not in the material, copy it exactly"
        return None

    text = f"## Rubrics\n\n{asked}\n\n## Material\n\n{material}"
    answer = ask(
        means.models,
        Question(Role.JUDGE, place, PROMPT, text, Rulings, (), means.turns.judge, check),
        bounds,
    )
    return answer if isinstance(answer, GaveUp) else tuple(answer.rulings)


def judge_exploit(
    means: Means, place: str, instruction: str, script: str, how: str
) -> ExploitRuling | GaveUp:
    """Whether a script that earned the full reward does the work."""
    bounds = means.bounds
    text = "\n\n".join(
        (
            quoted("instruction.md", instruction, bounds.file),
            quoted("script", script, bounds.file),
            quoted("what is claimed of it", how, 1000),
        )
    )

    def check(answer: ExploitRuling) -> str | None:
        if is_quoted(answer.quote, script):
            return None
        return "the quote is not a line of the script, copy it exactly"

    return ask(
        means.models,
        Question(
            Role.JUDGE, place, EXPLOIT_PROMPT, text, ExploitRuling, (), means.turns.judge, check
        ),
        bounds,
    )


def is_quoted(quote: str, material: str) -> bool:
    """Whether these words stand in the material, white space aside."""
    words = _SPACE.sub(" ", quote).strip()
    return len(words) >= SHORTEST_QUOTE and words in _SPACE.sub(" ", material)


def _told(demand: Demand) -> str:
    return (
        f"{demand.title}\n{demand.why}\n{demand.statement.situation}\n"
        f"{demand.statement.requirement}\nchecks: {', '.join(demand.checks)}"
    )
