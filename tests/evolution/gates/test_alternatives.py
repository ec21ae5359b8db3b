"""Tests that refuse correct work, and tests that are only strict."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus
from evolution.gates import alternatives
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Desk
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import Outcome, SandboxFile, TrialResult
from tests.evolution.real_sandbox import CONFIG, edited, orders, subject_of

bubblewrap = pytest.mark.bubblewrap


def judged(bundle: Bundle, runner: TrialRunner) -> GateResult:
    with ThreadPoolExecutor(2) as pool:
        case = Case(subject_of(bundle), CONFIG)
        desk = Desk(runner, MemoryLog(), pool)
        return desk.settle({alternatives.GATE: alternatives.check(case)})[alternatives.GATE]


def insisting(line: str) -> Bundle:
    """The small environment, whose tests also insist on something."""
    return orders(
        edited(orders(), "tests/checks.py", ("assert report()", f"{line}\n    assert report()"))
    )


@bubblewrap
def test_strict_tests_accept_other_correct_work(runner: TrialRunner) -> None:
    answer = judged(orders(), runner)
    assert answer.status is GateStatus.PASSED, answer.reason
    assert dict(answer.figures)["variants"] == 5


@bubblewrap
@pytest.mark.parametrize(
    ("line", "variant"),
    [
        ("assert '{\\n  ' in open('/app/out/report.json').read()", "without white space"),
        ("assert list(report()) == sorted(report())", "keys in another order"),
        (
            "assert ', ' not in open('/app/out/report.json').read()[:0] + str(list(report())[:0])",
            "",
        ),
    ],
)
def test_tests_that_insist_on_the_form_are_found(
    runner: TrialRunner, line: str, variant: str
) -> None:
    answer = judged(insisting(line), runner)
    assert (answer.status is GateStatus.FAILED) is bool(variant)
    if variant:
        assert answer.reason.startswith("other correct work is refused by days: ")
        assert any(variant in item.label and "failed" in item.result for item in answer.evidence)


@bubblewrap
def test_tests_that_look_for_temporary_files_are_found(runner: TrialRunner) -> None:
    text = orders().text("task.toml").replace('environment_mode = "separate"', "")
    bundle = insisting("import os; assert not os.path.exists('/tmp/.scratch')")
    answer = judged(bundle.with_files([SandboxFile("task.toml", text.encode())]), runner)
    assert answer.status is GateStatus.FAILED
    assert "temporary files elsewhere" in answer.reason


@bubblewrap
def test_a_form_that_the_instruction_asks_for_does_not_count(runner: TrialRunner) -> None:
    told = orders().instruction + "\nThe object has sorted keys.\n"
    bundle = insisting("assert list(report()) == sorted(report())")
    answer = judged(bundle.with_files([SandboxFile("instruction.md", told.encode())]), runner)
    assert answer.status is GateStatus.PASSED
    assert "a matter of the instruction: the same JSON, keys in another order" in answer.reason


ORACLE = TrialResult(
    Outcome.PASS,
    (("reward", 1.0),),
    state=(
        SandboxFile("/app/out/a.json", b'{"b": 1.50, "a": 2}'),
        SandboxFile("/app/out/b.json", b'{"b": 1, "a": [{"z": "x: y,  z", "y": 0}]}\n'),
    ),
)
NOP = TrialResult(Outcome.FAIL, (("reward", 0.0),), state=())


def states(oracle: TrialResult = ORACLE) -> dict[str, dict[str, bytes]]:
    made = alternatives.variants_of(orders(), oracle, NOP)
    return {v.label: {f.path: f.data for f in v.spec.state} for v in made if v.spec.state}


def test_values_and_their_order_stay_as_they_are() -> None:
    found = states()
    assert found["the same JSON, without white space"]["/app/out/b.json"] == (
        b'{"b":1,"a":[{"z":"x: y,  z","y":0}]}'
    )
    turned = found["the same JSON, keys in another order"]["/app/out/b.json"]
    assert turned == b'{"a":[{"y":0,"z":"x: y,  z"}],"b":1}'
    assert all(one["/app/out/a.json"] == b'{"b": 1.50, "a": 2}' for one in found.values()), (
        "a number that Python would write otherwise is left alone"
    )


def test_a_result_whose_check_sum_another_one_holds_is_left_alone() -> None:
    assert ORACLE.state is not None
    told = SandboxFile("/app/out/sums", ORACLE.state[1].digest.encode())
    assert states(replace(ORACLE, state=(*ORACLE.state, told))) == {}


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_rewritten_json_means_the_same(value: object) -> None:
    data = json.dumps({"all": value}, indent=1).encode()
    oracle = replace(ORACLE, state=(SandboxFile("/app/out/x.json", data),))
    for label, state in states(oracle).items():
        assert json.loads(state["/app/out/x.json"]) == {"all": value}
        assert len(state["/app/out/x.json"]) <= len(data) or label.endswith("indented")


TABLE = b"name,count\nada,3\nben,1\ncleo,7\ndora,2\n"


def rows(told: str, table: bytes = TABLE, *more: SandboxFile) -> bytes | None:
    text = SandboxFile("instruction.md", f"Count the orders. {told}\n".encode())
    oracle = replace(ORACLE, state=(SandboxFile("/app/out/t.csv", table),))
    made = alternatives.variants_of(orders(text, *more), oracle, NOP)
    found = [v.spec.state[0].data for v in made if "rows" in v.label and v.spec.state]
    return found[0] if found else None


def test_sorted_rows_are_turned_where_nobody_asked_for_an_order() -> None:
    assert rows("Write name and count.") == b"name,count\ndora,2\ncleo,7\nben,1\nada,3\n"
    assert rows("Take the one that comes first in order of text.") is not None
    assert rows("", TABLE.rstrip()) == rows("")


@pytest.mark.parametrize(
    "told",
    [
        "Sorted by name.",
        "In alphabetical order.",
        "The largest count comes first.",
        "Rank them.",
        "One line for the total follows in the given sequence.",
    ],
)
def test_an_order_that_is_asked_for_stays(told: str) -> None:
    assert rows(told) is None


def test_an_order_that_a_document_or_the_input_gives_stays() -> None:
    readme = SandboxFile("environment/data/README.md", b"Tables are sorted by name.\n")
    assert rows("", TABLE, readme) is None
    names = SandboxFile("environment/data/names.txt", b"ada\nben\ncleo\ndora\n")
    assert rows("Convert the names.", TABLE, names) is None
    assert rows("Convert the names.", TABLE) is not None
    assert rows("", b"name,count\nben,3\nada,5\ndora,1\ncleo,4\n") is None, "not sorted at all"
    assert rows("", b"name,count\nada,3\nben,1\n") is None, "too few to tell"


def test_json_grows_only_where_nothing_is_said_of_its_size() -> None:
    label = "the same JSON, indented"
    assert states()[label]["/app/out/b.json"].startswith(b'{\n   "b": 1')
    limit = SandboxFile("instruction.md", b"At most 90 bytes.\n")
    made = alternatives.variants_of(orders(limit), ORACLE, NOP)
    assert label not in [variant.label for variant in made]


ASKS = (Ask(alternatives.variants_of(orders(), ORACLE, NOP)[0].spec, "v"),)
VARIANTS = alternatives.variants_of(orders(), ORACLE, NOP)[:1]


def test_what_breaks_once_and_not_again_does_not_count() -> None:
    fail = TrialResult(Outcome.FAIL, (("reward", 0.0),))
    good = TrialResult(Outcome.PASS, (("reward", 1.0),))
    assert alternatives.judge(VARIANTS, ASKS, (fail,), {0: good}).status is GateStatus.PASSED
    assert alternatives.judge(VARIANTS, ASKS, (fail,), {0: fail}).status is GateStatus.FAILED
    broken = TrialResult(Outcome.INFRA_ERROR, error="gone")
    assert alternatives.judge(VARIANTS, ASKS, (broken,), {}).status is GateStatus.INCONCLUSIVE
