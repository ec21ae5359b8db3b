"""The two loops with scripted models, in the world without sandboxes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse

from evolution.authors.llm import LlmAuthor
from evolution.contracts import GateStatus, StepEnd, StepResult
from evolution.directions import Direction
from evolution.engine import evolve_step
from evolution.llm.calls import BudgetStop, CallOutcome, ModelUnavailable, Role, StepBudgetStop
from evolution.llm.replay import CallMemory
from evolution.memory import MemoryJournal
from evolution.prompts import prompt
from sandbox.contracts import SandboxFile
from tests.evolution.agents.orders_step import rulings
from tests.evolution.agents.scripted import (
    ScriptedModels,
    Speaker,
    calls,
    in_turn,
    says,
    text_of,
)
from tests.evolution.agents.toy_step import (
    CONFIG,
    PROPOSAL,
    ToyBench,
    child_files,
    finished,
    means_of,
    scripts,
)
from tests.evolution.toy_world import FIRST, ToyRunner, solve, toy_subject


def step(
    models: ScriptedModels,
    *,
    bench: ToyBench | None = None,
    log: CallMemory | None = None,
    journal: MemoryJournal | None = None,
) -> StepResult:
    """One step of the toy seed."""
    author = LlmAuthor(means_of(models, bench=bench, log=log))
    return evolve_step(
        toy_subject(), author, ToyRunner(), journal or MemoryJournal(), CONFIG, workers=1
    )


def test_a_step_goes_through_all_roles_to_an_accepted_child() -> None:
    models, bench = ScriptedModels(scripts()), ToyBench()
    result = step(models, bench=bench)
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert result.accepted is not None
    mutation = result.accepted.mutation
    assert mutation.demand.operator == "llm:one-more-word"
    assert mutation.child.by_path["solution/solve.sh"].mode == 0o755
    ratchet = mutation.child.config["metadata"]["ratchet"]
    assert (ratchet["direction"], ratchet["effort"]) == ("length", "low")
    assert len(ratchet["sequence"]) == 3
    assert bench.opened == 1
    assert models.places[0] == ("3/length/propose/0", prompt("proposer", "house").digest)
    assert len({place for place, _ in models.places}) == len(models.places)


def test_what_was_recorded_of_tools_is_not_done_again() -> None:
    log, bench = CallMemory(), ToyBench()
    first = step(ScriptedModels(scripts()), bench=bench, log=log)
    known = len(log.calls)
    again = step(ScriptedModels(scripts()), bench=bench, log=log)
    assert first.accepted is not None
    assert again.accepted is not None
    assert first.accepted.mutation.child.digest == again.accepted.mutation.child.digest
    assert (bench.opened, len(log.calls)) == (1, known)


def test_a_build_that_was_cut_goes_on_from_what_was_done() -> None:
    log, bench, journal = CallMemory(), ToyBench(), MemoryJournal()

    def cut(messages: list[ModelMessage]) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            raise BudgetStop("the run's budget is used up")
        return says(*child_files()[:2])

    with pytest.raises(BudgetStop):
        step(ScriptedModels(scripts(modifier=cut)), bench=bench, log=log, journal=journal)
    rest = in_turn(says(*child_files()[:2]), says(*child_files()[2:]), finished())
    result = step(ScriptedModels(scripts(modifier=rest)), bench=bench, log=log, journal=journal)
    assert result.end is StepEnd.ACCEPTED, result.refusals
    whole = step(ScriptedModels(scripts()))
    assert whole.accepted is not None
    assert result.accepted is not None
    assert result.accepted.mutation.child.digest == whole.accepted.mutation.child.digest
    assert bench.opened == 2


def test_a_failed_child_is_repaired_from_the_evidence() -> None:
    def sloppy(messages: list[ModelMessage]) -> ModelResponse:
        is_repair = "Repair your draft" in text_of(messages)
        files = child_files(asks_for_it=is_repair)
        if is_repair:
            assert "gate demand: failed" in text_of(messages) or "gate oracle" in text_of(messages)
            files = files[1:2]  # the rest of the draft is still there
        else:
            files = (
                *files[:1],
                calls("write_file", path="tests/more.txt", content="x"),
                *files[2:],
            )
        return in_turn(says(*files), finished())(messages)

    models = ScriptedModels(scripts(modifier=sloppy))
    result = step(models)
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert [attempt.repair for attempt in result.attempts] == [0, 1]
    assert result.attempts[0].verdict.status is GateStatus.FAILED
    assert [p for p, _ in models.places if "modify" in p] == [
        "3/length/modify/0",
        "3/length/modify/0/repair",
    ]


def test_a_reviewer_returns_a_plan_until_it_is_revised() -> None:
    def proposer(messages: list[ModelMessage]) -> ModelResponse:
        is_told = "say which word" in text_of(messages)
        details = "the word is word-99" if is_told else "a word"
        return says(calls("finish", **{**PROPOSAL, "details": details}))

    def reviewer(messages: list[ModelMessage]) -> ModelResponse:
        if "the word is word-99" in text_of(messages):
            return says(calls("finish", accepted=True))
        return says(calls("finish", accepted=False, findings=["say which word"]))

    models = ScriptedModels(scripts(proposer=proposer, plan_reviewer=reviewer))
    result = step(models)
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert models.roles()[:4] == [Role.PROPOSER, Role.PLAN_REVIEWER] * 2


@pytest.mark.parametrize(
    ("role", "speaker", "said"),
    [
        ("proposer", in_turn(says("I would rather not.")), "the proposer gave up"),
        (
            "proposer",
            in_turn(says(calls("finish", refusal="no length fits"))),
            "the proposer sees no step: no length fits",
        ),
        ("plan_reviewer", in_turn(says("")), "plan reviewer: the model's answers"),
        ("modifier", in_turn(says(calls("search_web", query="x"))), "the modifier gave up"),
        (
            "modifier",
            in_turn(says(calls("read_file", path="instruction.md"))),
            "no answer within 12 turns",
        ),
        (
            "modifier",
            in_turn(says(calls("finish", refusal="the image has no tool"))),
            "cannot build it: the image has no tool",
        ),
        (
            "modifier",
            in_turn(says(calls("write_file", path="/etc/passwd", content="x"))),
            "the modifier gave up",
        ),
    ],
)
def test_a_role_that_comes_to_no_answer_ends_in_one_line(
    role: str, speaker: Speaker, said: str
) -> None:
    result = step(ScriptedModels(scripts(**{role: speaker})))
    assert result.end is StepEnd.EXHAUSTED
    assert said in result.refusals[-1], result.refusals
    assert "\n" not in result.refusals[-1]
    assert not result.attempts


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": []}, "checks: needed"),
        ({"naive_without": ["nowhere.sh"]}, "solution/nowhere.sh, which the solution does not"),
        ({"premise": ["line-77"]}, "no check of the parent"),
        ({"withheld": ["x"]}, "only a step of effect observation"),
        ({"title": "再写一个单词到文件的最后一行"}, "write in English"),
    ],
)
def test_a_hand_over_that_lacks_something_is_sent_back(
    changes: dict[str, object], said: str
) -> None:
    told: list[str] = []

    def modifier(messages: list[ModelMessage]) -> ModelResponse:
        told.append(text_of(messages))
        return in_turn(says(*child_files()), finished(**changes), finished())(messages)

    result = step(ScriptedModels(scripts(modifier=modifier)))
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert said in told[-1]


@pytest.mark.parametrize("role", list(Role)[:5])
def test_an_endpoint_that_is_away_leaves_the_step_open(role: Role) -> None:
    def away(_: list[ModelMessage]) -> ModelResponse:
        raise ModelUnavailable(CallOutcome.CIRCUIT_OPEN, "local", "it has failed too often")

    journal = MemoryJournal()
    result = step(ScriptedModels({**scripts(), role: away}), journal=journal)
    assert result.end is StepEnd.INCONCLUSIVE
    assert result.refusals == ("model: local: it has failed too often",)
    assert step(ScriptedModels(scripts()), journal=journal).end is StepEnd.ACCEPTED


def test_a_step_whose_budget_is_used_up_ends_without_a_child() -> None:
    def stopped(_: list[ModelMessage]) -> ModelResponse:
        raise StepBudgetStop("100 tokens of the step are used up")

    result = step(ScriptedModels(scripts(judge=stopped)))
    assert result.end is StepEnd.EXHAUSTED
    assert result.attempts[-1].verdict.status is GateStatus.INCONCLUSIVE
    assert "100 tokens" in result.refusals[-1]


def test_a_breach_of_a_rubric_needs_words_that_are_there() -> None:
    def judge(messages: list[ModelMessage]) -> ModelResponse:
        is_told = "not in the material" in text_of(messages)
        return rulings(real_work="Write 21 words" if is_told else "Rename all the files")

    models = ScriptedModels(scripts(judge=judge))
    result = step(models)
    assert result.end is StepEnd.EXHAUSTED
    assert result.attempts[0].verdict.gates[-1].gate == "rubrics"
    assert "real-work" in result.attempts[0].verdict.gates[-1].reason


EXPLOIT = calls("finish", script=solve([*FIRST, "word-99"]), how="it knows the words by heart")


@pytest.mark.parametrize(
    ("script", "does_the_work", "end"),
    [
        (EXPLOIT, False, StepEnd.EXHAUSTED),
        (EXPLOIT, True, StepEnd.ACCEPTED),
        (calls("finish", script="echo nothing", how="a lie"), False, StepEnd.ACCEPTED),
    ],
)
def test_an_exploit_counts_when_a_fresh_trial_confirms_it(
    script: object, does_the_work: bool, end: StepEnd
) -> None:
    def judge(messages: list[ModelMessage]) -> ModelResponse:
        if "script" not in text_of(messages) or "rubrics" in text_of(messages).lower():
            return rulings()
        return says(
            calls("finish", does_the_work=does_the_work, quote="echo word-11 >>", reason="so it is")
        )

    assert isinstance(script, type(EXPLOIT))
    result = step(ScriptedModels(scripts(judge=judge, exploiter=in_turn(says(script)))))
    assert result.end is end, result.refusals
    gate = result.attempts[0].verdict.gates[-1]
    assert gate.gate == "exploiter"
    assert gate.status is (GateStatus.PASSED if end is StepEnd.ACCEPTED else GateStatus.FAILED)


def test_judges_and_exploiters_that_give_up_stop_nothing_and_prove_nothing() -> None:
    def babbles(_: list[ModelMessage]) -> ModelResponse:
        return says(calls("finish", nonsense=True))

    result = step(ScriptedModels(scripts(judge=babbles, exploiter=babbles)))
    assert result.end is StepEnd.ACCEPTED, result.refusals
    last = result.attempts[0].verdict.gates[-2:]
    assert [gate.status for gate in last] == [GateStatus.NOT_APPLICABLE] * 2


def test_a_naive_solution_that_lacks_more_than_the_demand_proves_nothing() -> None:
    def modifier(messages: list[ModelMessage]) -> ModelResponse:
        files = (*child_files()[:3], calls("write_file", path="/naive/solve.sh", content=solve([])))
        return in_turn(says(*files), finished())(messages)

    result = step(ScriptedModels(scripts(modifier=modifier)))
    assert result.end is StepEnd.EXHAUSTED
    assert "checks that the demand does not touch" in result.refusals[0]


def test_a_lineage_that_stated_no_sequence_gets_one() -> None:
    pairs = [{"scenario": f"state {n} of the list", "skill": f"skill {n} for it"} for n in (1, 2)]
    models = ScriptedModels(
        {**scripts(), Role.COLD_START: in_turn(says(calls("finish", pairs=pairs)))}
    )
    from evolution.sequence import assumed_sequence

    subject = toy_subject()
    foreign = replace(subject, sequence=assumed_sequence(subject.bundle.config))
    author = LlmAuthor(means_of(models))
    result = evolve_step(foreign, author, ToyRunner(), MemoryJournal(), CONFIG, workers=1)
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert result.accepted is not None
    assert [pair.scenario for pair in result.accepted.mutation.sequence] == [
        "state 1 of the list",
        "state 2 of the list",
        "a longer list",
    ]
    assert models.roles()[0] is Role.COLD_START


def test_another_lineage_and_another_direction_are_other_places() -> None:
    config = replace(CONFIG, seed=4, directions=(Direction.SKILL,))
    edit = {"index": 0, "scenario": "an empty file", "skill": "writing on"}
    models = ScriptedModels(
        scripts(proposer=in_turn(says(calls("finish", **{**PROPOSAL, "edits": [edit]}))))
    )
    author = LlmAuthor(means_of(models))
    result = evolve_step(toy_subject(), author, ToyRunner(), MemoryJournal(), config, workers=1)
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert all(place.startswith("4/skill/") for place, _ in models.places)


def test_files_are_read_back_with_their_modes() -> None:
    files = (
        *child_files(),
        calls("write_file", path="solution/data.bin", content="AAE=", encoding="base64"),
    )
    result = step(ScriptedModels(scripts(modifier=in_turn(says(*files), finished()))))
    assert result.accepted is not None, result.refusals
    child = result.accepted.mutation.child
    assert child.by_path["solution/data.bin"] == SandboxFile("solution/data.bin", b"\0\1", 0o644)
    assert result.accepted.mutation.adaptation == ("solution/data.bin", "solution/solve.sh")
