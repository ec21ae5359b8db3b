"""Bundles that are broken in ordinary ways: the right verdict, and one clear line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus
from evolution.gates.case import Case
from evolution.gates.desk import TRIED
from evolution.gates.oracle import complaint
from evolution.gates.policy import Depth, Policy, asked
from evolution.gates.protocol import verify_bundle
from evolution.gates.specs import oracle_asks
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import Outcome, SandboxFile, TrialResult
from tests.evolution.real_sandbox import CONFIG, edited, orders, subject_of

pytestmark = pytest.mark.bubblewrap


def script(path: str, text: str) -> SandboxFile:
    return SandboxFile(path, f"#!/bin/bash\n{text}\n".encode(), 0o755)


def last_gate(bundle: Bundle, runner: TrialRunner) -> GateResult:
    """The answer that ended the verification; it is one plain line."""
    log = MemoryLog()
    verdict = verify_bundle(subject_of(bundle), None, runner, log, CONFIG)
    assert tuple(log.gates) == verdict.gates
    assert verdict.status is verdict.gates[-1].status
    assert "\n" not in verdict.gates[-1].reason
    return verdict.gates[-1]


def test_a_sound_environment_passes_every_gate(runner: TrialRunner) -> None:
    log = MemoryLog()
    verdict = verify_bundle(subject_of(orders()), None, runner, log, CONFIG)
    assert verdict.is_valid, verdict.failed
    assert [gate.gate for gate in verdict.gates] == list(asked(Policy.IMPORTED, Depth.QUICK))
    assert all(gate.status is not GateStatus.FAILED for gate in verdict.gates)
    assert log.faults == []


def test_a_solution_that_hangs_is_the_bundles_fault(runner: TrialRunner) -> None:
    bundle = orders(
        script("solution/solve.sh", "sleep 600"),
        edited(
            orders(), "task.toml", ("[agent]\ntimeout_sec = 20.0", "[agent]\ntimeout_sec = 1.0")
        ),
    )
    gate = last_gate(bundle, runner)
    assert (gate.gate, gate.status) == ("oracle", GateStatus.FAILED)
    assert gate.reason.startswith(
        "the reference solution does not end within the 1 s that it is given: "
        "its solver phase was ended after 1."
    )
    assert gate.reason.endswith("(task.toml says so: [agent] timeout_sec = 1)")


def test_tests_that_never_end_are_the_bundles_fault_when_it_is_so_every_time(
    runner: TrialRunner,
) -> None:
    limit = ("[verifier]\ntimeout_sec = 20.0", "[verifier]\ntimeout_sec = 0.5")
    bundle = orders(script("tests/test.sh", "sleep 60"), edited(orders(), "task.toml", limit))
    gate = last_gate(bundle, runner)
    assert (gate.gate, gate.status) == ("oracle", GateStatus.FAILED)
    assert gate.reason == (
        "the tests do not end within the 0.5 s that they are given, in 3 of 3 fresh sandboxes "
        "(task.toml says so: [verifier] timeout_sec = 0.5)"
    )


def test_tests_that_ran_out_of_time_once_say_nothing() -> None:
    ask = oracle_asks(Case(subject_of(orders()), CONFIG))[0]
    late = TrialResult(Outcome.INFRA_ERROR, phases=(("verifier", 20.1),), error="too late")
    once = replace(late, notes=(f"{TRIED}the server is gone", f"{TRIED}too late"))
    always = replace(late, notes=(f"{TRIED}too late", f"{TRIED}too late"))
    assert complaint(ask, late) is complaint(ask, once) is None
    assert "in 3 of 3 fresh sandboxes" in str(complaint(ask, always))


def test_tests_that_write_no_reward_are_a_broken_bundle(runner: TrialRunner) -> None:
    gate = last_gate(orders(script("tests/test.sh", "true")), runner)
    assert (gate.gate, gate.status) == ("nop", GateStatus.FAILED)
    assert gate.reason.startswith("the tests leave no usable reward when nothing was done: ")


def test_a_reward_of_nan_is_a_broken_bundle(runner: TrialRunner) -> None:
    gate = last_gate(
        orders(script("tests/test.sh", "echo nan > /logs/verifier/reward.txt")), runner
    )
    assert (gate.gate, gate.status) == ("nop", GateStatus.FAILED)
    assert gate.reason.startswith("the tests leave no usable reward when nothing was done: ")
    assert "nan" in gate.reason


def test_tests_that_accept_anything_are_refused_by_nop(runner: TrialRunner) -> None:
    gate = last_gate(orders(script("tests/test.sh", "echo 1 > /logs/verifier/reward.txt")), runner)
    assert (gate.gate, gate.status) == ("nop", GateStatus.FAILED)
    assert gate.reason == "doing nothing earns full reward"


def test_tests_that_need_work_to_give_a_reward_are_refused_by_nop(runner: TrialRunner) -> None:
    text = "test -e /app/out/report.json && echo 1 > /logs/verifier/reward.txt"
    gate = last_gate(orders(script("tests/test.sh", text)), runner)
    assert (gate.gate, gate.status) == ("nop", GateStatus.FAILED)
    assert "no usable reward when nothing was done" in gate.reason


def test_a_wrong_solution_names_the_checks_that_it_fails(runner: TrialRunner) -> None:
    gate = last_gate(
        orders(edited(orders(), "solution/report.py", ("len(days)", "len(days) + 1"))), runner
    )
    assert (gate.gate, gate.status) == ("oracle", GateStatus.FAILED)
    assert gate.reason == "the reference solution earns 0, not 1; failed: days"
    assert gate.evidence[0].exit_status == 0
    assert gate.evidence[0].key


@pytest.mark.parametrize(
    ("changes", "gate", "most"),
    [
        ((script("solution/solve.sh", "exit 1"),), "oracle", 3),
        ((script("tests/test.sh", "echo 1 > /logs/verifier/reward.txt"),), "nop", 1),
        ((script("tests/test.sh", "true"),), "nop", 1),
        ((SandboxFile("environment/data/solve.sh", orders().by_path["solution/report.py"].data),),
         "leak", 0),
    ],
)  # fmt: skip
def test_a_broken_bundle_costs_three_sandboxes_at_most(
    runner: TrialRunner, changes: tuple[SandboxFile, ...], gate: str, most: int
) -> None:
    log, subject = MemoryLog(), replace(subject_of(orders(*changes)), generation=1)
    verdict = verify_bundle(subject, None, runner, log, depth=Depth.FULL)
    assert [answer.gate for answer in verdict.failed] == [gate]
    assert sum(result.sandboxes for result in log.results.values()) == most
    assert log.faults == []


def test_a_broken_bundle_is_not_run(runner: TrialRunner) -> None:
    gate = last_gate(orders(without=("tests/test.sh",)), runner)
    assert (gate.gate, gate.status) == ("format", GateStatus.FAILED)
    assert "tests/test.sh" in gate.reason


def test_an_image_that_does_not_build_is_refused_by_build(runner: TrialRunner) -> None:
    text = orders().text("environment/Dockerfile").replace("COPY data/", "COPY nowhere/")
    gate = last_gate(orders(SandboxFile("environment/Dockerfile", text.encode())), runner)
    assert (gate.gate, gate.status) == ("build", GateStatus.FAILED)


def test_what_cannot_be_built_here_is_inconclusive(runner: TrialRunner) -> None:
    text = orders().text("environment/Dockerfile") + "HEALTHCHECK CMD true\n"
    gate = last_gate(orders(SandboxFile("environment/Dockerfile", text.encode())), runner)
    assert (gate.gate, gate.status) == ("build", GateStatus.INCONCLUSIVE)
    assert "Docker" in gate.reason


def test_findings_on_an_imported_environment_do_not_block_it(runner: TrialRunner) -> None:
    lax = (
        "test -s /app/out/report.json && echo 1 > /logs/verifier/reward.txt "
        "|| echo 0 > /logs/verifier/reward.txt"
    )
    bundle = orders(script("tests/test.sh", lax))
    verdict = verify_bundle(subject_of(bundle), None, runner, MemoryLog(), CONFIG)
    found = verdict.gates[-1]
    assert (found.gate, found.status) == ("mutants", GateStatus.FAILED)
    assert not found.is_blocking
    assert verdict.is_valid
    assert any(
        item.label.startswith("not noticed: ") and item.last_lines for item in found.evidence
    )
