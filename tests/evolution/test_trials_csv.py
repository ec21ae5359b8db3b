"""Trials measured elsewhere: one answer a line, and only what says something counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution.trials_csv import ImportedTrial, TrialRefusal, parse_csv, parse_jsonl, read_trials

HEADER = "solver,task,trial,resolved,failure_mode,input_tokens,output_tokens,seconds,tests_total\n"


def _rows(*lines: str) -> list[ImportedTrial | TrialRefusal]:
    return list(parse_csv([HEADER, *(f"{line}\n" for line in lines)]))


def _one(line: str) -> ImportedTrial | TrialRefusal:
    (answer,) = _rows(line)
    return answer


def test_a_row_of_the_public_leaderboard() -> None:
    assert _one("agent_model,hello-world,4,1,unset,10,20,811.1,2") == ImportedTrial(
        line=2,
        solver="agent_model",
        task="hello-world",
        trial=4,
        is_passed=True,
        input_tokens=10,
        output_tokens=20,
        seconds=811.1,
    )


@pytest.mark.parametrize(
    ("cause", "counts"),
    [
        ("unset", True),
        ("", True),
        ("agent_timeout", True),
        ("AgentTimeoutError", True),
        ("context_length_exceeded", True),
        ("out_of_memory", True),
        ("test_timeout", False),
        ("parse_error", False),
        ("agent_installation_failed", False),
        ("RewardFileNotFoundError", False),
        ("something new", False),
    ],
)
def test_what_counts(cause: str, counts: bool) -> None:
    for passed in ("0", "1"):
        answer = _one(f"a,t,1,{passed},{cause},,,,")
        assert isinstance(answer, ImportedTrial)
        assert answer.counts is counts
        assert answer.is_passed is (passed == "1")


def test_a_time_out_that_passed_is_a_pass() -> None:
    answer = _one("a,t,1,1,agent_timeout,,,1200.1,")
    assert isinstance(answer, ImportedTrial)
    assert (answer.is_passed, answer.counts, answer.cause) == (True, True, "agent_timeout")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (",t,1,1,unset,,,,", "solver is empty"),
        ("a,,1,1,unset,,,,", "task is empty"),
        ("a,t,1,maybe,unset,,,,", "neither 1 nor 0"),
        ("a,t,1,,unset,,,,", "neither passed nor failed"),
        ("a,t,1.5,1,unset,,,,", "whole number"),
        ("a,t,-1,1,unset,,,,", "no such number"),
        ("a,t,1,1,unset,1_000,,,", "no such number"),
        ("a,t,1,1,unset,,,nan,", "no such number"),
        ("a,t,1,1,unset,,,inf,", "no such number"),
        ("a,t,1,1,unset,,,٣,", "no such number"),
        ("a,t,1,1,unset,,1e30,,", "whole number"),
        ("a\x1b[31m,t,1,1,unset,,,,", "no plain text"),
        ("a\udcff,t,1,1,unset,,,,", "no plain text"),
        ("a,t,1,1", "4 cells under 9"),
        (f"{'a' * 201},t,1,1,unset,,,,", "longer than 200"),
        ('a,"t"x,1,1,unset,,,,', "not CSV"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_and_the_rest_goes_on(line: str, reason: str) -> None:
    first, last = _rows(line, "a,good,1,1,unset,,,,")
    assert isinstance(first, TrialRefusal)
    assert first.line == 2
    assert reason in first.reason
    assert isinstance(last, ImportedTrial)


def test_the_same_trial_twice_is_refused_once() -> None:
    first, second = _rows("a,t,1,1,unset,,,,", "a,t,1,0,unset,,,,")
    assert isinstance(first, ImportedTrial)
    assert second == TrialRefusal(3, "the same trial as in line 2")


def test_trials_without_a_number_are_counted() -> None:
    lines = ["agent,task_id,is_resolved", "a,t,true", "a,t,False", "a,u,1"]
    numbers = [row.trial for row in parse_csv(lines) if isinstance(row, ImportedTrial)]
    assert numbers == [1, 2, 1]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("task,resolved", "no column solver"),
        ("solver,resolved", "no column task"),
        ("solver,task", "no column resolved"),
        ("solver,task,resolved,task", "twice"),
    ],
)
def test_a_header_that_does_not_fit_is_one_refusal(header: str, reason: str) -> None:
    (answer,) = parse_csv([header, "a,b,c"])
    assert isinstance(answer, TrialRefusal)
    assert reason in answer.reason


def test_json_lines() -> None:
    answers = list(
        parse_jsonl(
            [
                '{"solver": "a", "task": "t", "reward": 1.0, "seconds": 3}\n',
                "\n",
                '{"agent": "a", "task_id": "t", "resolved": false, "cause": "agent_timeout"}',
                '{"solver": "a", "task": "t", "reward": -0.5}',
                '{"solver": "a", "task": "t", "reward": NaN}',
                '{"solver": "a", "task": "t", "reward": true}',
                '{"solver": 3, "task": "t", "reward": 1}',
                "[1]",
                '{"solver": "a"',
                "[" * 60_000,
                '{"x": "' + "y" * 70_000 + '"}',
            ]
        )
    )
    good = [a for a in answers if isinstance(a, ImportedTrial)]
    assert [(a.line, a.trial, a.is_passed) for a in good] == [
        (1, 1, True),
        (3, 2, False),
        (4, 3, False),
    ]
    assert [a.line for a in answers if isinstance(a, TrialRefusal)] == [5, 6, 7, 8, 9, 10, 11]


def test_a_file_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        b"\xef\xbb\xbf" + HEADER.encode() + b"a,t,1,1,,,,,\r\n\xff,t,1,1,,,,,"
    )
    first, second = read_trials(tmp_path / "a.csv")
    assert isinstance(first, ImportedTrial)
    assert isinstance(second, TrialRefusal)
    (tmp_path / "a.jsonl").write_text('{"solver": "a", "task": "t", "passed": 1}')
    (only,) = read_trials(tmp_path / "a.jsonl")
    assert isinstance(only, ImportedTrial)
