"""What a foreign bundle lacks: its sequence, its reference solution."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic_ai.messages import ToolCallPart

from evolution.agents.asking import GaveUp
from evolution.agents.cold_start import Completed, extract_sequence, write_solution
from evolution.agents.means import Means
from evolution.agents.triage import triage
from evolution.contracts import StepConfig, Subject
from evolution.llm.calls import Role
from evolution.memory import MemoryLog
from evolution.sequence import Pair
from sandbox.trial import Runner
from tests.evolution.agents.conftest import RunnersBench
from tests.evolution.agents.scripted import ScriptedModels, Speaker, calls, in_turn, says, text_of
from tests.evolution.agents.toy_step import ToyBench, means_of
from tests.evolution.real_sandbox import REPORT, orders, subject_of
from tests.evolution.toy_world import FIRST, solve, toy_subject

CONFIG = StepConfig(seed=1, oracle_runs=1, nop_runs=1)


def cold(speaker: Speaker) -> ScriptedModels:
    """Models of which the one for a cold start is scripted."""
    return ScriptedModels({Role.COLD_START: speaker, Role.TRIAGE: speaker})


def test_pairs_that_say_the_same_are_sent_back() -> None:
    twice = [{"scenario": "a ledger", "skill": "reading"}] * 2
    good = [{"scenario": "a ledger", "skill": "reading"}, {"scenario": "sums", "skill": "adding"}]
    models = cold(in_turn(says(calls("finish", pairs=twice)), says(calls("finish", pairs=good))))
    found = extract_sequence(means_of(models), toy_subject())
    assert found == (Pair("a ledger", "reading"), Pair("sums", "adding"))
    assert "two pairs say the same" in text_of(models.sent[-1][2])


def test_no_sequence_is_better_than_one_out_of_form() -> None:
    found = extract_sequence(means_of(cold(in_turn(says("a ledger, then sums")))), toy_subject())
    assert isinstance(found, GaveUp)


def without_solution() -> Subject:
    """The toy seed without its solution."""
    subject = toy_subject()
    return replace(subject, bundle=subject.bundle.with_files((), ["solution/solve.sh"]))


@pytest.mark.parametrize(
    ("words", "extra", "said"),
    [
        (FIRST, (), ""),
        (FIRST[:3], (), "is not sound: oracle"),
        (
            FIRST,
            (calls("write_file", path="/bundle/tests/required.txt", content=""),),
            "is outside",
        ),
    ],
)
def test_a_solution_is_taken_through_the_gates_alone(
    words: list[str], extra: tuple[ToolCallPart, ...], said: str
) -> None:
    write = calls("write_file", path="/bundle/solution/solve.sh", content=solve(words))
    models = cold(in_turn(says(*extra, write), says(calls("finish", summary="done"))))
    bench = ToyBench()
    made = write_solution(
        means_of(models, bench=bench),
        without_solution(),
        MemoryLog(),
        CONFIG,
    )
    if said == "is not sound: oracle":
        assert isinstance(made, str)
        assert said in made
    else:
        assert isinstance(made, Completed), made
        assert (
            made.bundle.by_path["tests/required.txt"]
            == toy_subject().bundle.by_path["tests/required.txt"]
        )
        assert said in text_of(models.sent[-1][2])
    assert bench.opened == 1


@pytest.mark.bubblewrap
def test_a_solution_is_written_and_tried_in_a_sandbox(
    runner: Runner, workbench: RunnersBench
) -> None:
    bundle = orders(without=("solution/solve.sh", "solution/report.py"))
    script = f"#!/bin/bash\nset -e\nmkdir -p /app/out\npython3 - <<'END'\n{REPORT}END\n"
    models = cold(
        in_turn(
            says(calls("run", command="cat /tests/checks.py; touch /bundle/tests/left.txt")),
            says(calls("write_file", path="/bundle/solution/solve.sh", content=script)),
            says(calls("finish", summary="done")),
            says(calls("run", command="rm /bundle/tests/left.txt")),
            says(calls("try_draft", solution="reference")),
            says(calls("finish", summary="done")),
        )
    )
    means = Means(models, workbench, runner)
    made = write_solution(means, subject_of(bundle), MemoryLog(), CONFIG)
    assert isinstance(made, Completed), made
    assert made.bundle.by_path["solution/solve.sh"].mode == 0o755
    sent = text_of(models.sent[-1][2])
    assert "left.txt was changed: only files below solution/" in sent
    assert "reward 1" in sent


def test_triage_quotes_what_shows_it() -> None:
    wrong = {"kind": "broken_oracle", "quote": "nowhere to be found", "reason": "so"}
    right = {"kind": "unsolved", "quote": "failed: line-3", "reason": "one line is wrong"}
    models = cold(in_turn(says(calls("finish", **wrong)), says(calls("finish", **right))))
    told = [("someone", "reward 0; failed: line-3")]
    made = triage(means_of(models), "triage/x", toy_subject().bundle, told)
    assert not isinstance(made, GaveUp)
    assert made.kind == "unsolved"
