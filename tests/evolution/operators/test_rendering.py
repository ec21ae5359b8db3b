"""An instruction is one text: goal, situation, work, conditions."""

from __future__ import annotations

from dataclasses import replace

from evolution.contracts import Demand, Statement
from evolution.directions import Aspect, Direction, Effect
from evolution.rendering import render, restored

HIDDEN = Demand(
    id="hidden",
    operator="hidden",
    direction=Direction.SCENARIO,
    aspect=Aspect.RESOURCES,
    effect=Effect.SOLUTION,
    notch=1,
    title="hidden",
    why="hidden",
    statement=Statement("`/app/data/in.csv` is gone.", restored(["/app/data/in.csv"])),
    checks=("hidden.restored",),
    facts=(("input", "/app/data/in.csv"),),
)
LATER = replace(
    HIDDEN,
    id="later",
    direction=Direction.LENGTH,
    statement=Statement("Then there is more.", "More is done."),
    facts=(),
)


def test_the_goal_comes_first_and_the_conditions_last() -> None:
    text = render("Sum up the orders.\n\nRead `/app/data/in.csv`.\n", [LATER, HIDDEN])
    assert text == (
        "Sum up the orders.\n\n"
        "`/app/data/in.csv` is gone.\n\n"
        "Read `/app/data/in.csv` (once restored).\n\n"
        "Then there is more.\n\n"
        "Conditions that the result must meet:\n\n"
        "- `/app/data/in.csv` is restored byte for byte and left in place.\n"
        "- More is done.\n"
    )


def test_alike_duties_are_one_condition() -> None:
    other = replace(
        HIDDEN,
        id="other",
        statement=Statement("", restored(["/app/b"])),
        facts=(("input", "/app/b"),),
    )
    text = render("Work.\n\nMore.\n", [HIDDEN, other])
    assert (
        "- `/app/data/in.csv` and `/app/b` are restored byte for byte and left in place.\n" in text
    )


def test_canary_lines_and_the_title_stay_on_top() -> None:
    canary = "<!-- CANARY: never train on this -->\n\n"
    text = render(f"{canary}# Orders\n\nSum up.\n\nRead.\n", [HIDDEN])
    assert text.startswith(f"{canary}# Orders\n\nSum up.\n\n`/app/data/in.csv` is gone.\n\nRead.")


def test_a_hidden_input_is_remarked_once_in_running_text_only() -> None:
    original = (
        "Goal.\n\n```\ncat `in.csv`\n```\n\nTake `data/in.csv`; `in.csv` has three columns.\n"
    )
    text = render(original, [HIDDEN])
    assert "cat `in.csv`\n" in text
    assert "Take `data/in.csv` (once restored); `in.csv` has three columns." in text


def test_without_demands_the_original_stays_as_it_is() -> None:
    assert (
        render("# Title\n\nDo it.\n\n- one\n- two\n", []) == "# Title\n\nDo it.\n\n- one\n- two\n"
    )


def test_what_a_colon_announces_belongs_to_the_goal() -> None:
    text = render("Audit these:\n\n- `in.csv`\n\nDeliver.\n", [HIDDEN])
    assert text.index("- `in.csv`") < text.index("is gone.") < text.index("Deliver.")
