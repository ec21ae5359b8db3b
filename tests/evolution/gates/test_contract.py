"""Requirements that nobody states, and honest ways of stating or finding them."""

from __future__ import annotations

import base64
import gzip
import json
import random
from dataclasses import replace

import pytest

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus
from evolution.gates import contract
from evolution.gates.protocol import verify_bundle
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import Outcome, SandboxFile, Trace, TrialResult
from tests.evolution.real_sandbox import CONFIG, edited, orders, subject_of

REPORT = "/app/out/report.json"
NOP = TrialResult(Outcome.FAIL, state=())


def renamed(old: str, new: str) -> Bundle:
    """The small environment with a name of its result changed everywhere but in the instruction."""
    changed = [
        edited(orders(), path, (old, new))
        for path in ("solution/report.py", "tests/checks.py")
        if old in orders().text(path)
    ]
    return orders(*changed)


DAYS = renamed('"days"', '"day_count"')


def judged(bundle: Bundle, key: str = "day_count", path: str = REPORT) -> GateResult:
    report = json.dumps({"customer-1": 4004, key: 11}).encode()
    trace = Trace(read=("/app/data/orders.csv", "/app/data/form.dat"), written=(path,))
    oracle = TrialResult(Outcome.PASS, state=(SandboxFile(path, report),), trace=trace)
    return contract.judge(bundle, oracle, NOP)


def test_everything_stated_is_a_sound_contract() -> None:
    answer = judged(orders(), "days")
    assert answer.status is GateStatus.PASSED
    assert dict(answer.figures)["asked_for"] >= 2


def test_a_key_that_nobody_names_is_found() -> None:
    answer = judged(DAYS)
    assert answer.status is GateStatus.FAILED
    assert answer.reason.startswith("day_count: asked for by the tests")
    assert "tests/checks.py" in answer.evidence[0].result
    assert REPORT in answer.evidence[0].result


def test_what_may_lie_in_a_file_that_nobody_read_is_unknown_without_a_trace() -> None:
    blob = SandboxFile("environment/data/form.dat", bytes(range(128, 256)) * 4)
    report = json.dumps({"customer-1": 4004, "day_count": 11}).encode()
    oracle = TrialResult(Outcome.PASS, state=(SandboxFile(REPORT, report),))
    for trace in (None, Trace(written=(REPORT,), is_complete=False)):
        answer = contract.judge(DAYS.with_files([blob]), replace(oracle, trace=trace), NOP)
        assert answer.status is GateStatus.INCONCLUSIVE
        assert "what the solution read is not known" in answer.reason
    plain = contract.judge(DAYS, oracle, NOP)
    assert plain.status is GateStatus.FAILED, "everything was read, and nothing says it"


def test_a_file_that_nobody_names_is_found() -> None:
    answer = judged(renamed("report.json", "summary_v2.json"), "days", "/app/out/summary_v2.json")
    assert answer.status is GateStatus.FAILED
    assert "summary_v2.json" in answer.reason


def test_a_column_that_nobody_names_is_found() -> None:
    table = "customer,total_cents\ncustomer-1,4004\n"
    write = "print('customer,total_cents')\n"
    bundle = orders(
        SandboxFile("solution/report.py", write.encode()),
        SandboxFile("tests/expected.csv", table.encode()),
    )
    oracle = TrialResult(Outcome.PASS, state=(SandboxFile("/app/out/t.csv", table.encode()),))
    assert contract.judge(bundle, oracle, NOP).reason.startswith("total_cents: ")


@pytest.mark.parametrize(
    "file",
    [
        SandboxFile("environment/data/README", b"The report has a day_count.\n"),
        SandboxFile("environment/data/README.gz", gzip.compress(b"... day_count: integer\n" * 9)),
        SandboxFile("environment/data/form.dat", "| day_count | number |".encode("utf-16")),
        SandboxFile("environment/data/form.b64", base64.b64encode(b"keys: day_count, total " * 9)),
        SandboxFile("environment/data/day_count.schema", b"{}"),
        SandboxFile("instruction.md", b"Write report.json, with the day count beside the totals."),
    ],
    ids=lambda file: file.path,
)
def test_a_key_that_can_be_found_somewhere_is_fair(file: SandboxFile) -> None:
    assert judged(DAYS.with_files([file])).status is GateStatus.PASSED


def test_what_comes_out_of_the_data_is_no_name_to_be_told() -> None:
    answer = judged(orders(without=("environment/data/orders.csv",)), "days")
    assert answer.status is GateStatus.PASSED
    assert "customer-1" not in answer.reason


def test_what_only_a_message_says_is_not_asked_for() -> None:
    checks = (
        orders()
        .text("tests/checks.py")
        .replace('report()["days"] == DAYS', 'report()["days"] == DAYS, "bad day_count"')
    )
    bundle = DAYS.with_files([SandboxFile("tests/checks.py", checks.encode())])
    assert judged(bundle).status is GateStatus.PASSED


def test_what_may_lie_in_a_sealed_file_is_said_but_does_not_count() -> None:
    noise = random.Random(1).randbytes(400)
    sealed = DAYS.with_files([SandboxFile("environment/data/form.dat", noise)])
    answer = judged(sealed)
    assert answer.status is GateStatus.PASSED
    assert "day_count" in answer.reason
    assert "data/form.dat" in answer.reason
    unopened = DAYS.with_files([SandboxFile("environment/data/picture.png", noise)])
    assert judged(unopened).status is GateStatus.FAILED


def test_a_check_sum_is_no_sealed_file() -> None:
    sums = SandboxFile("environment/data/form.dat", b"%s  orders.csv\n" % (b"0f1e2d3c" * 8))
    assert judged(DAYS.with_files([sums])).status is GateStatus.FAILED


def test_words_of_a_well_known_format_are_reported_and_do_not_count() -> None:
    unit = b"[Service]\nExecStart=/usr/bin/orders\n"
    bundle = orders(
        SandboxFile("solution/report.py", b'print("[Service]\\nExecStart=/usr/bin/orders")\n'),
        SandboxFile("tests/checks.py", b'WANTED = "ExecStart"\n'),
    )
    oracle = TrialResult(Outcome.PASS, state=(SandboxFile("/app/out/orders.unit", unit),))
    answer = contract.judge(bundle, oracle, NOP)
    assert answer.status is GateStatus.PASSED
    assert [item.label for item in answer.evidence] == ["execstart"]


SAID = "Write `{}`: an object with the amount of every customer, and under `days` their number."


@pytest.mark.parametrize(
    "path",
    [
        "/app/output/report.json",
        "/app/out/Report.json",
        "/app/report.json",
        "/app/out/report.txt",
        "/app/out/summary.json",
    ],
)
def test_a_result_that_the_instruction_calls_by_another_path_is_found(path: str) -> None:
    answer = judged(orders(SandboxFile("instruction.md", SAID.format(path).encode())), "days")
    assert answer.status is GateStatus.FAILED
    assert answer.reason == f"the instruction says {path}, the tests read {REPORT}"


@pytest.mark.parametrize(
    "told",
    [
        SAID.format(REPORT) + " The old /app/output/report.json is of no use.",
        SAID.format("report.json") + " It belongs into /app/out, unlike /app/old/report.json.",
        SAID.format("report.json") + " See /app/data/orders.csv, and /app/out/lines.log for lines.",
        SAID.format(REPORT) + " Nothing may be left in /app/out/report.tmp.",
    ],
)
def test_a_path_that_is_only_spoken_of_is_no_other_name(told: str) -> None:
    answer = judged(orders(SandboxFile("instruction.md", told.encode())), "days")
    assert answer.status is GateStatus.PASSED, answer.reason


def test_a_path_that_a_document_of_the_image_gives_is_told() -> None:
    told = SandboxFile("instruction.md", SAID.format("/app/output/report.json").encode())
    readme = SandboxFile("environment/data/README", f"Reports lie at {REPORT}.\n".encode())
    assert judged(orders(told, readme), "days").status is GateStatus.PASSED


@pytest.mark.bubblewrap
def test_an_unstated_key_is_a_finding_on_an_imported_environment(runner: TrialRunner) -> None:
    verdict = verify_bundle(subject_of(DAYS), None, runner, MemoryLog(), CONFIG)
    found = {gate.gate: gate for gate in verdict.gates}["contract"]
    assert found.status is GateStatus.FAILED
    assert not found.is_blocking
    assert found.reason.startswith("day_count: ")
    assert verdict.is_valid
