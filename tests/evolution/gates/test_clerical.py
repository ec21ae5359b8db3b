"""Work for its own sake is told from work that something has to be worked out for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evolution.contracts import Mutation
from evolution.gates.clerical import clerical_complaint
from evolution.gates.parent_solution import renamed
from sandbox.contracts import Outcome, SandboxFile, TrialResult
from tests.evolution.real_sandbox import edited, orders
from tests.evolution.shams.operators import demand_already_met

REPORT = "/app/out/report.json"
EXTRA = "/app/out/extra.txt"


def ended(outcome: Outcome, files: Mapping[str, bytes]) -> TrialResult:
    state = tuple(SandboxFile(path, data) for path, data in files.items())
    return TrialResult(outcome, (("reward", float(outcome is Outcome.PASS)),), state=state)


def complaint(naive: Mapping[str, bytes], full: Mapping[str, bytes]) -> str:
    made: Mutation = demand_already_met()
    found = clerical_complaint(made, ended(Outcome.PASS, full), ended(Outcome.FAIL, naive))
    return found or ""


@pytest.mark.parametrize(
    "content",
    [b"", b'{"a": 41}\n', b"orders amount\n", orders().by_path["environment/data/orders.csv"].data],
    ids=["empty", "copy of an output", "words of the instruction", "copy of an input"],
)
def test_what_can_be_copied_or_written_down_at_once_is_clerical(content: bytes) -> None:
    base = {REPORT: b'{"a": 41}\n'}
    assert complaint(base, {**base, EXTRA: content}).startswith(f"clerical: {EXTRA} is a copy")


@pytest.mark.parametrize(
    ("naive", "full"),
    [
        ({REPORT: b"41"}, {REPORT: b"41", EXTRA: b"42"}),
        ({REPORT: b"41"}, {REPORT: b"41", EXTRA: b"orders", "/app/out/b": b"42"}),
        ({REPORT: b"41"}, {REPORT: b"40", EXTRA: b"orders"}),
        ({REPORT: b"41"}, {EXTRA: b"orders"}),
        ({REPORT: b"41"}, {REPORT: b"41"}),
    ],
    ids=["worked out", "one of two", "another result", "something gone", "nothing new"],
)
def test_what_has_to_be_worked_out_is_not(
    naive: Mapping[str, bytes], full: Mapping[str, bytes]
) -> None:
    assert complaint(naive, full) == ""


def test_a_state_that_was_not_kept_says_nothing() -> None:
    passed = TrialResult(Outcome.PASS, (("reward", 1.0),))
    assert clerical_complaint(demand_already_met(), passed, ended(Outcome.FAIL, {})) is None


def test_a_renamed_path_renames_its_last_part_too() -> None:
    before = orders()
    names = ("/app/out/report.json", "/app/out/final-report.json")
    after = before.with_files([edited(before, "instruction.md", names)])
    assert ("report.json", "final-report.json") in renamed(before, after)
