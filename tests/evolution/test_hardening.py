"""Hardening: what was rewarded is refused afterwards, or no child is made."""

from __future__ import annotations

import pytest

from evolution.bundle import Bundle, with_config
from evolution.contracts import StepConfig, StepEnd
from evolution.execution import task_config, verifier_spec
from evolution.hardening import Hardening, from_toolchain, harden
from evolution.locking import MARK, Lock, locked, locking_refusal
from evolution.memory import MemoryLog
from sandbox.contracts import Outcome, SandboxFile, TrialResult
from sandbox.trial import Runner
from tests.evolution.operators.subjects import attempt
from tests.evolution.real_sandbox import orders, runner, subject_of

__all__ = ["runner"]  # a fixture
CONFIG = StepConfig(seed=1, oracle_runs=1, nop_runs=1)
LAX = b"#!/bin/bash\ncd /app\npython3 /tests/run_checks.py\n"


def shared(*changes: SandboxFile) -> Bundle:
    """The small environment as public ones are: judged where it was solved, carelessly."""
    careless = SandboxFile("tests/test.sh", LAX, 0o755)
    changed = orders(careless, *changes)
    return with_config(changed, {("artifacts",): None, ("verifier", "environment_mode"): None})


def hardened(bundle: Bundle, runner: Runner) -> Hardening:
    return harden(subject_of(bundle), runner, lambda _: MemoryLog(), CONFIG)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_outputs_that_can_be_carried_are_judged_apart(runner: Runner) -> None:
    parent = shared()
    found = hardened(parent, runner)
    assert found.end is StepEnd.ACCEPTED, found
    assert found.child is not None
    assert {"a .pth file", "python3 replaced", "sitecustomize"} <= set(found.refused)
    assert task_config(found.child).is_separate
    assert found.child.config["artifacts"] == ["/app/out"]
    assert found.child.folder("solution") == parent.folder("solution")
    assert found.child.folder("environment") == parent.folder("environment")
    assert found.after is not None
    assert found.after.reason.startswith("none of ")


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_work_that_cannot_be_carried_is_judged_by_locked_tests(runner: Runner) -> None:
    def at_home(path: str) -> SandboxFile:
        file = orders().by_path[path]
        data = file.data.replace(b"/app/out", b"/var/out")
        return SandboxFile(path, data, file.mode)

    paths = ("instruction.md", "solution/solve.sh", "solution/report.py", "tests/checks.py")
    parent = shared(*map(at_home, paths))
    found = hardened(parent, runner)
    assert found.end is StepEnd.ACCEPTED, found
    assert found.child is not None
    assert found.title.startswith("the tests are tightly locked")
    assert MARK in found.child.text("tests/test.sh")
    assert not task_config(found.child).is_separate
    assert found.tried[0].startswith("a clean sandbox: ")


@pytest.mark.bubblewrap
def test_tests_that_accept_anything_are_hardened_by_no_form(runner: Runner) -> None:
    lax = b"#!/bin/bash\n[ -e /app/out/report.json ]; echo $((! $?)) > /logs/verifier/reward.txt\n"
    found = hardened(orders(SandboxFile("tests/test.sh", lax, 0o755)), runner)
    assert (found.end, found.child) == (StepEnd.EXHAUSTED, None)
    assert all("still rewarded: empty outputs" in line for line in found.tried), found.tried


@pytest.mark.bubblewrap
def test_what_is_safe_already_is_left_as_it_is(runner: Runner) -> None:
    found = hardened(orders(), runner)
    assert (found.end, found.child) == (StepEnd.EXHAUSTED, None)
    assert found.reason == "no cheat that is known is rewarded here"


@pytest.mark.bubblewrap
def test_an_environment_that_does_not_work_is_not_hardened(runner: Runner) -> None:
    broken = orders(SandboxFile("solution/solve.sh", b"#!/bin/bash\nexit 1\n", 0o755))
    found = hardened(broken, runner)
    assert (found.end, found.child) == (StepEnd.EXHAUSTED, None)
    assert found.reason.startswith("the parent, oracle: ")


class Broken:
    """A runner whose machinery never works."""

    def prepare(self, spec: object) -> object:
        raise AssertionError("nobody builds here")

    def run(self, spec: object) -> object:
        return TrialResult(Outcome.INFRA_ERROR, error="gone")


def test_broken_machinery_is_no_verdict() -> None:
    found = harden(subject_of(shared()), Broken(), lambda _: MemoryLog(), CONFIG)  # type: ignore[arg-type]
    assert (found.end, found.child) == (StepEnd.INCONCLUSIVE, None)
    assert "gone" in found.reason


@pytest.mark.bubblewrap
@pytest.mark.parametrize("lock", Lock)
def test_a_lock_ends_what_the_solver_left_running(runner: Runner, lock: Lock) -> None:
    reward = "/logs/verifier/reward.txt"
    loop = f"while sleep 0.02; do grep -q 0 {reward} && echo 1 > {reward}; done"
    work = f"#!/bin/bash\nsetsid bash -c '{loop}' < /dev/null > /dev/null 2>&1 &\n"
    cheat = [SandboxFile("solve.sh", work.encode(), 0o755)]
    slow = shared(SandboxFile("tests/test.sh", LAX + b"sleep 0.5\n", 0o755))
    assert attempt(runner, slow, cheat).is_passed
    assert not attempt(runner, locked(slow, lock), cheat).is_passed


@pytest.mark.bubblewrap
def test_nothing_lives_on_to_rewrite_the_tests_before_they_start(runner: Runner) -> None:
    write = "[ -e /tests/test.sh ] && echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh"
    loop = f"while :; do {write}; done"
    work = f'#!/bin/bash\nsetsid bash -c "{loop}" < /dev/null > /dev/null 2>&1 &\n'
    tight = locked(shared())
    assert tight.config["metadata"]["ratchet"]["ends_processes"] is True
    assert verifier_spec(tight).ends_solver
    assert not verifier_spec(shared()).ends_solver
    for _ in range(3):
        result = attempt(runner, tight, [SandboxFile("solve.sh", work.encode(), 0o755)])
        assert not result.is_passed


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (SandboxFile("tests/test.sh", b"#!/usr/bin/python3\n", 0o755), "no script of sh or bash"),
        (SandboxFile("tests/test.sh", b"#!/bin/sh\n\xff\n", 0o755), "is not UTF-8"),
        (locked(shared()).by_path["tests/test.sh"], "are locked already"),
    ],
)
def test_what_cannot_be_locked_says_why(file: SandboxFile, reason: str) -> None:
    assert reason in (locking_refusal(shared(file)) or "")


def test_pytest_is_fetched_only_where_it_can_be() -> None:
    text = b"#!/bin/bash\ncd /app\npython3 -m pytest /tests/test_x.py -q\necho $?\n"
    bundle = shared(SandboxFile("tests/test.sh", text, 0o755))
    assert from_toolchain(bundle) is None, "no network, so elsewhere nothing could be fetched"
    public = with_config(bundle, {("environment", "network_mode"): "public"})
    changed = from_toolchain(public)
    assert changed is not None
    assert "uvx -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest /tests/test_x.py -q" in (
        changed.text("tests/test.sh")
    )
    assert from_toolchain(changed) is None, "it is fetched already"
