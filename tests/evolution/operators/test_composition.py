"""The composed layout means what the bundle meant, and fails closed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evolution.bundle import Bundle
from evolution.composition import composed, composing_refusal, configured, with_artifacts
from evolution.sequence import Pair
from sandbox.contracts import Outcome, SandboxFile
from sandbox.trial import Runner
from tests.evolution.operators.subjects import attempt, seed
from tests.evolution.real_sandbox import orders

MET = b'def check_met():\n    """Holds."""\n'
UNMET = b'def check_met():\n    assert False, "not done"\n'


def script(path: str, *lines: str) -> SandboxFile:
    return SandboxFile(path, "\n".join(("#!/bin/bash", *lines, "")).encode(), 0o755)


def with_demand(bundle: Bundle, checks: bytes) -> Bundle:
    return composed(bundle).with_files([SandboxFile("tests/demands/extra.py", checks)])


def test_composing_twice_changes_nothing() -> None:
    once = composed(orders())
    assert composed(once) == once
    assert once.text("solution/steps/50-base.sh") == orders().text("solution/solve.sh")
    assert once.text("tests/base_test.sh") == orders().text("tests/test.sh")


def test_a_solution_that_asks_where_it_is_stays_beside_its_files() -> None:
    bundle = orders(script("solution/solve.sh", 'python3 "$(dirname "$0")/report.py"'))
    assert composed(bundle).text("solution/base_solve.sh") == bundle.text("solution/solve.sh")


@pytest.mark.parametrize(
    ("bundle", "reason"),
    [
        (orders(without=("solution/solve.sh",)), "no solution/solve.sh"),
        (orders(SandboxFile("tests/Dockerfile", b"FROM x\n")), "image of their own"),
        (orders(SandboxFile("steps/one/instruction.md", b"x")), "several steps"),
        (orders(SandboxFile("environment/Dockerfile", b"FROM alpine\n")), "no python3"),
        (orders(SandboxFile("tests/base_test.sh", b"x")), "taken by a file"),
    ],
)
def test_what_cannot_be_composed_is_refused_by_name(bundle: Bundle, reason: str) -> None:
    assert reason in (composing_refusal(bundle) or "")
    with pytest.raises(ValueError, match=reason):
        composed(bundle)


def test_artifacts_are_added_without_overlaps() -> None:
    assert with_artifacts(["/app/out"], ["/app/out/a", "/app/b"]) == ["/app/out", "/app/b"]
    assert with_artifacts(["/app/data/a", "/app/out"], ["/app/data"]) == ["/app/out", "/app/data"]
    table = {"source": "/app/data/a", "exclude": ["x"]}
    assert with_artifacts([table], ["/app/data"]) == [table, "/app/data"]


def test_configuration_keeps_the_text_of_the_rest() -> None:
    bundle = orders()
    child = configured(bundle, ["/app/new"], {"generation": 1}, (Pair("a", "b"),))
    assert child.config["artifacts"] == ["/app/out", "/app/new"]
    assert child.config["metadata"]["ratchet"]["sequence"] == [{"scenario": "a", "skill": "b"}]
    untouched = [line for line in bundle.text("task.toml").splitlines() if "_sec" in line]
    assert untouched
    assert all(line in child.text("task.toml").splitlines() for line in untouched)


@pytest.mark.bubblewrap
@pytest.mark.parametrize("slug", ["nginx-log-forensics", "broken-backup-script"])
def test_a_composed_seed_is_solved_and_judged_as_before(runner: Runner, slug: str) -> None:
    before = seed(slug)
    after = composed(before)
    plain = attempt(runner, before, before.folder("solution"))
    result = attempt(runner, after, after.folder("solution"))
    assert result.is_passed
    assert result.state_digest == plain.state_digest
    assert [c.name for c in result.checks] == [c.name for c in plain.checks]
    assert not attempt(runner, after, None).is_passed


@pytest.mark.bubblewrap
def test_a_demand_decides_together_with_the_original_tests(runner: Runner) -> None:
    met, unmet = with_demand(orders(), MET), with_demand(orders(), UNMET)
    assert attempt(runner, met, met.folder("solution")).is_passed
    failed = attempt(runner, unmet, unmet.folder("solution"))
    assert failed.reward == 0
    assert failed.failed_checks == {"extra.met"}
    assert attempt(runner, met, None).failed_checks == {"totals", "days"}


@pytest.mark.bubblewrap
def test_original_tests_without_a_report_count_as_one_check(runner: Runner) -> None:
    bare = script("tests/test.sh", "echo 1 > /logs/verifier/reward.txt")
    bundle = with_demand(orders(bare), UNMET)
    result = attempt(runner, bundle, bundle.folder("solution"))
    assert {check.name: check.status for check in result.checks} == {
        "base": "passed",
        "extra.met": "failed",
    }


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("test", "checks"),
    [
        (script("tests/test.sh", "exit 0"), MET),
        (script("tests/test.sh", "echo nan > /logs/verifier/reward.txt"), MET),
        (script("tests/test.sh", "echo '{}' > /logs/verifier/reward.json"), MET),
        (None, b"raise RuntimeError('broken')\n"),
        (None, b"VALUE = 1\n"),
    ],
)
def test_broken_tests_leave_no_reward(
    runner: Runner, test: SandboxFile | None, checks: bytes
) -> None:
    bundle = with_demand(orders(*([test] if test else [])), checks)
    result = attempt(runner, bundle, bundle.folder("solution"))
    assert result.outcome is Outcome.INVALID_REWARD


@pytest.mark.bubblewrap
def test_named_rewards_stay_named(runner: Runner) -> None:
    rewards = json.dumps({"reward": 1, "style": 0.5})
    test = script("tests/test.sh", f"echo '{rewards}' > /logs/verifier/reward.json")
    met, unmet = with_demand(orders(test), MET), with_demand(orders(test), UNMET)
    assert dict(attempt(runner, met, None).rewards) == {"reward": 1.0, "style": 0.5}
    assert dict(attempt(runner, unmet, None).rewards) == {"reward": 0.0, "style": 0.0}


@pytest.mark.bubblewrap
def test_the_steps_stop_at_the_first_that_fails(runner: Runner) -> None:
    bundle = composed(orders()).with_files([script("solution/steps/10-early.sh", "exit 3")])
    result = attempt(runner, bundle, bundle.folder("solution"))
    assert result.solver_exit_status == 3
    assert not result.is_passed


def test_modes_of_steps_let_them_run() -> None:
    solve = replace(orders().by_path["solution/solve.sh"], mode=0o644)
    assert composed(orders(solve)).by_path["solution/steps/50-base.sh"].mode == 0o755
