"""How a role asks: what a model gets wrong is told to it, and every way ends."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse

from evolution.agents.answers import PairEdit, Review
from evolution.agents.asking import GaveUp, Question, ask
from evolution.agents.proposer import edit_of
from evolution.agents.trimming import Bounds, size_of
from evolution.contracts import Plan
from evolution.directions import Aspect, Direction, Effort
from evolution.language import is_foreign
from evolution.llm.calls import CallFailed, CallOutcome, Role
from evolution.prompts import prompt
from evolution.roles.plan_reviewer import effort_complaint
from evolution.sequence import Pair, SequenceEdit, apply_edit
from tests.evolution.agents.scripted import ScriptedModels, Speaker, calls, in_turn, says, text_of

GOOD = says(calls("finish", accepted=True))


def asked(speaker: Speaker, text: str = "a plan") -> tuple[object, ScriptedModels]:
    """A question to a scripted reviewer."""
    models = ScriptedModels({Role.PLAN_REVIEWER: speaker})
    question = Question(Role.PLAN_REVIEWER, "here", prompt("plan_reviewer", "house"), text, Review)
    return ask(models, question, Bounds(request=20_000)), models


@pytest.mark.parametrize(
    "wrong",
    [
        says("accepted"),
        says(calls("finish", accepted="perhaps")),
        says(calls("finish", accepted=True, grade=5)),
        says(calls("decide", accepted=True)),
        ModelResponse([]),
    ],
)
def test_an_answer_out_of_form_is_sent_back_once(wrong: ModelResponse) -> None:
    answer, models = asked(in_turn(wrong, GOOD))
    assert answer == Review(accepted=True)
    assert len(models.sent) == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (says("never"), "out of form"),
        (says(calls("finish", accepted="perhaps")), "out of form"),
        (says(calls("decide", accepted=True)), "out of form"),
    ],
)
def test_a_model_that_never_gets_it_right_is_given_up(wrong: ModelResponse, said: str) -> None:
    answer, models = asked(in_turn(wrong))
    assert isinstance(answer, GaveUp)
    assert said in answer.reason
    assert "\n" not in answer.reason
    assert len(models.sent) <= 6


def test_a_request_that_does_not_fit_is_halved_until_it_does() -> None:
    sizes: list[int] = []

    def small(messages: list[ModelMessage]) -> ModelResponse:
        sizes.append(size_of(messages))
        if sizes[-1] > 6000:
            raise CallFailed(CallOutcome.CONTEXT_OVERFLOW, "too long for this model")
        return GOOD

    answer, _ = asked(small, "x" * 100_000)
    assert answer == Review(accepted=True)
    assert 18_000 < sizes[0] <= 20_500
    assert sizes == sorted(sizes, reverse=True)


def test_a_model_that_takes_nothing_is_given_up() -> None:
    def tiny(_: list[ModelMessage]) -> ModelResponse:
        raise CallFailed(CallOutcome.CONTEXT_OVERFLOW, "too long for this model")

    answer, models = asked(tiny)
    assert answer == GaveUp("the model gave no answer: too long for this model")
    assert len(models.sent) == 4


def test_turns_that_run_out_are_announced() -> None:
    answer, models = asked(in_turn(says(calls("decide")), says(calls("decide")), says("x")))
    assert isinstance(answer, GaveUp)
    assert "3 turns are left" in text_of(models.sent[3][2])


PAIRS = tuple(Pair(f"state {n}", f"skill {n}") for n in range(4))


def plan(direction: Direction, effort: Effort, *edits: tuple[int, str, str]) -> Plan:
    """A plan with these edits."""
    edit: SequenceEdit = edit_of(
        direction, [PairEdit(index=i, scenario=s, skill=k) for i, s, k in edits]
    )
    sequence = apply_edit(PAIRS, edit)
    return Plan("llm:x", direction, Aspect.CONSTRAINTS, effort, 1, sequence, edit, "a", "b", seed=1)


@pytest.mark.parametrize(
    ("effort", "indexes", "is_allowed"),
    [
        (Effort.LOW, (1,), True),
        (Effort.LOW, (1, 2), False),
        (Effort.HIGH, (1, 2), True),
        (Effort.HIGH, (0, 3), False),
        (Effort.MAX, (0, 3), True),
    ],
)
@pytest.mark.parametrize("direction", [Direction.SKILL, Direction.LENGTH])
def test_effort_is_the_size_of_the_edit(
    direction: Direction, effort: Effort, indexes: tuple[int, ...], is_allowed: bool
) -> None:
    edits = [
        (i, f"state {i}" if direction is Direction.SKILL else f"new {i}", f"new skill {i}")
        for i in indexes
    ]
    said = effort_complaint(PAIRS, plan(direction, effort, *edits))
    assert (said is None) is is_allowed, said


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("A ranking of the customers by their totals", False),
        ("Die Kundenliste nach Größe, für Müller", False),
        ("按总额对客户进行排名并写入文件", True),
        ("Ranking клиентов по сумме", True),
        ("σ = 3", False),
    ],
)
def test_another_script_is_told_from_english(text: str, is_other: bool) -> None:
    assert is_foreign(text) is is_other
