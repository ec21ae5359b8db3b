"""Outcomes measured elsewhere, from CSV or JSONL: one trial a line, one answer a line.

What counts: a solver that ran into its time, memory or quota was judged all the same, so its
outcome counts and the cause is a label. Faults of the verifier or of the machinery say nothing
about the environment and never count; nor does a cause that is not known here.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

FIELD_CAP = 200
"""The longest name of a solver or environment, in characters."""
LINE_CAP = 65_536
_INTEGER_CAP = 2**62

_SOLVER = ("solver", "agent")
_TASK = ("task", "task_id", "task_name", "environment")
_TRIAL = ("trial", "attempt", "repetition")
_PASSED = ("resolved", "is_resolved", "passed", "is_passed")
_REWARD = ("reward",)
_CAUSE = ("failure_mode", "cause", "exception_type")
_INPUT = ("input_tokens", "total_input_tokens", "n_input_tokens")
_OUTPUT = ("output_tokens", "total_output_tokens", "n_output_tokens")
_SECONDS = ("seconds", "duration_seconds")

_NO_CAUSE = frozenset({"", "unset", "none"})
SOLVER_CAUSES = frozenset(
    {
        "agent_timeout",
        "agenttimeouterror",
        "timeout",
        "out_of_memory",
        "quota",
        "context_length_exceeded",
        "output_length_exceeded",
        "fatal_llm_parse_error",
    }
)
"""The solver's own ends: its work was judged, or it spoiled its own attempt. These count."""
OTHER_CAUSES = frozenset(
    {
        "test_timeout",
        "parse_error",
        "verifiertimeouterror",
        "rewardfilenotfounderror",
        "rewardfileemptyerror",
        "verifieroutputparseerror",
        "unknown",
        "unknown_agent_error",
        "unknown_harness_error",
        "agent_installation_failed",
        "environmentstarttimeouterror",
    }
)
"""Faults of the verifier or of the machinery. These never count."""

_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """One attempt by one solver at one environment, made somewhere else.

    `trial` numbers the attempts of one solver at one environment. `cause` is the label of an
    unusual end, empty for an ordinary one. `counts` is False where the outcome says nothing.
    """

    line: int
    solver: str
    task: str
    trial: int
    is_passed: bool
    cause: str = ""
    counts: bool = True
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TrialRefusal:
    """A line that was not taken, and why, in one line."""

    line: int
    reason: str


class _Unreadable(Exception):
    """A line is refused; the message is the reason."""


Row = Mapping[str, object]


def read_trials(path: Path) -> Iterator[ImportedTrial | TrialRefusal]:
    """The trials of a file, one answer a line: JSONL when its name says so, else CSV.

    Raises OSError when the file cannot be read.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        is_jsonl = path.suffix.lower() in (".jsonl", ".ndjson", ".json")
        yield from parse_jsonl(stream) if is_jsonl else parse_csv(stream)


def parse_csv(lines: Iterable[str]) -> Iterator[ImportedTrial | TrialRefusal]:
    """The trials of a CSV with a header. Columns beyond those that are known are passed over."""
    reader = csv.reader(lines, strict=True)
    return _answers(_csv_rows(reader))


def parse_jsonl(lines: Iterable[str]) -> Iterator[ImportedTrial | TrialRefusal]:
    """The trials of a text with one JSON object a line; empty lines are passed over."""
    return _answers(_jsonl_rows(lines))


def _csv_rows(reader: Iterator[list[str]]) -> Iterator[tuple[int, Row | str]]:
    header: list[str] = []
    while True:
        line = getattr(reader, "line_num", 0) + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield line, f"not CSV: {error}"
            if not header:
                return
            continue
        if not header:
            header = [cell.strip().lower() for cell in cells]
            problem = _header_problem(header)
            if problem:
                yield line, problem
                return
        elif not cells:
            continue
        elif len(cells) != len(header):
            yield line, f"{len(cells)} cells under {len(header)} column names"
        else:
            yield line, dict(zip(header, cells, strict=True))


def _header_problem(header: list[str]) -> str:
    if len(set(header)) != len(header):
        return "a column name is there twice"
    for names in (_SOLVER, _TASK, (*_PASSED, *_REWARD)):
        if not set(names) & set(header):
            return f"no column {' or '.join(names)}"
    return ""


def _jsonl_rows(lines: Iterable[str]) -> Iterator[tuple[int, Row | str]]:
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        if len(text) > LINE_CAP:
            yield line, f"longer than {LINE_CAP:,} characters"
            continue
        try:
            row = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            yield line, f"not JSON: {error}"
            continue
        yield line, row if isinstance(row, dict) else "not a JSON object"


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _answers(rows: Iterable[tuple[int, Row | str]]) -> Iterator[ImportedTrial | TrialRefusal]:
    seen: dict[tuple[str, str, int], int] = {}
    counted: dict[tuple[str, str], int] = {}
    for line, row in rows:
        try:
            if isinstance(row, str):
                raise _Unreadable(row)
            trial = _trial(line, row, counted)
            key = (trial.solver, trial.task, trial.trial)
            if key in seen:
                raise _Unreadable(f"the same trial as in line {seen[key]}")
            seen[key] = line
        except _Unreadable as error:
            yield TrialRefusal(line, str(error))
        else:
            yield trial


def _trial(line: int, row: Row, counted: dict[tuple[str, str], int]) -> ImportedTrial:
    solver, task = _name(row, _SOLVER), _name(row, _TASK)
    counted[solver, task] = counted.get((solver, task), 0) + 1
    number = _integer(row, _TRIAL)
    cause = _text(row, _CAUSE).strip().lower()
    cause = "" if cause in _NO_CAUSE else cause
    return ImportedTrial(
        line=line,
        solver=solver,
        task=task,
        trial=counted[solver, task] if number is None else number,
        is_passed=_is_passed(row),
        cause=cause[:60],
        counts=not cause or cause in SOLVER_CAUSES,
        input_tokens=_integer(row, _INPUT),
        output_tokens=_integer(row, _OUTPUT),
        seconds=_number(row, _SECONDS),
    )


def _value(row: Row, names: tuple[str, ...]) -> object:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _text(row: Row, names: tuple[str, ...]) -> str:
    value = _value(row, names)
    if value is None:
        return ""
    if not isinstance(value, str) or _UNPRINTABLE.search(value):
        raise _Unreadable(f"{names[0]} is no plain text")
    return value


def _name(row: Row, names: tuple[str, ...]) -> str:
    text = _text(row, names).strip()
    if not text:
        raise _Unreadable(f"{names[0]} is empty")
    if len(text) > FIELD_CAP:
        raise _Unreadable(f"{names[0]} is longer than {FIELD_CAP} characters")
    return text


def _is_passed(row: Row) -> bool:
    """Full reward is 1 or more, where a reward is given instead of a yes or no."""
    value = _value(row, _PASSED)
    if value is not None:
        word = _WORDS.get(str(value).strip().lower())
        if word is None:
            raise _Unreadable(f"{str(value)[:40]!r} is neither 1 nor 0")
        return word
    reward = _number(row, _REWARD, lowest=-math.inf)
    if reward is None:
        raise _Unreadable("neither passed nor failed")
    return reward >= 1.0


def _number(row: Row, names: tuple[str, ...], lowest: float = 0.0) -> float | None:
    value = _value(row, names)
    if value is None:
        return None
    text = str(value).strip()
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if isinstance(value, bool) or not math.isfinite(number) or number < lowest:
        raise _Unreadable(f"{names[0]}: {text[:40]!r} is no such number")
    return number


def _integer(row: Row, names: tuple[str, ...]) -> int | None:
    number = _number(row, names)
    if number is None:
        return None
    if number != int(number) or number > _INTEGER_CAP:
        raise _Unreadable(f"{names[0]}: {number:g} is no whole number")
    return int(number)
