"""What a separate verifier finds: the artifacts as they were left, in the image that judges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.fake import FakeBackend
from sandbox.contracts import (
    ArtifactSpec,
    Limits,
    NetworkPolicy,
    Outcome,
    SandboxFile,
    SolverEnd,
    SolverSpec,
    TrialResult,
    TrialSpec,
    VerifierSpec,
)
from sandbox.trial import Runner
from tests.sandbox.conformance import MIB, image_spec

pytestmark = pytest.mark.bubblewrap
_IMAGE = image_spec(
    b"FROM debian:bookworm-slim\nWORKDIR /app\nCOPY data/ /app/out/\nCOPY data/ /app/kept/\n"
)


@pytest.fixture
def runner(bubblewrap: BubblewrapBackend) -> Runner:
    return Runner(bubblewrap)


def _spec(solve: str | None, judge: str, **changes: object) -> TrialSpec:
    """`judge` is a condition in bash; it is met for reward 1."""
    script = f"#!/bin/bash\nif {judge}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    verifier = VerifierSpec(
        (SandboxFile("test.sh", script.encode()),),
        artifacts=(ArtifactSpec("/logs/artifacts"), ArtifactSpec("/app/out", ("left-out",))),
        timeout_seconds=20,
    )
    solver = SolverSpec("s", (), solve, timeout_seconds=20)
    spec = TrialSpec(_IMAGE, solver, verifier, keep_state=True)
    return replace(spec, **changes)  # type: ignore[arg-type]


def _paths(result: TrialResult) -> list[str]:
    return [file.path for file in result.state or ()]


def test_a_folder_that_was_emptied_is_empty_for_the_tests(runner: Runner) -> None:
    judge = "[ -d /app/out ] && [ -z $(ls -A /app/out) ] && [ -f /app/kept/one.txt ]"
    result = runner.run(_spec("rm -r out/*", judge))
    assert result.outcome is Outcome.PASS, result
    assert _paths(result) == ["/app/out/"]


def test_a_folder_that_was_removed_is_the_images_again(runner: Runner) -> None:
    result = runner.run(_spec("rm -r out", "[ -f /app/out/one.txt ]"))
    assert result.outcome is Outcome.PASS, result
    assert _paths(result) == []


def test_empty_folders_inside_are_carried_with_their_modes(runner: Runner) -> None:
    solve = (
        "mkdir -p out/a/b out/special out/hidden out/left-out; chmod 700 out/a/b;"
        " mkfifo out/special/pipe; touch out/hidden/left-out"
    )
    judge = (
        "[ $(stat -c %a /app/out/a/b) = 700 ] && [ -d /app/out/special ] && [ -d /app/out/hidden ]"
        " && [ ! -e /app/out/left-out ] && [ ! -e /app/out/special/pipe ]"
        " && [ -f /app/out/one.txt ]"
    )
    result = runner.run(_spec(solve, judge))
    assert result.outcome is Outcome.PASS, result
    assert [path for path in _paths(result) if path.endswith("/")] == [
        "/app/out/a/b/",
        "/app/out/hidden/",
        "/app/out/special/",
    ]


def test_a_state_is_judged_as_the_trial_that_left_it(runner: Runner) -> None:
    spec = _spec("rm -r out/*; mkdir out/made", "[ $(ls -A /app/out) = made ]")
    first = runner.run(spec)
    again = runner.run(replace(spec, state=first.state))
    assert (first.outcome, again.outcome) == (Outcome.PASS, Outcome.PASS), again
    assert first.state_digest == again.state_digest
    assert runner.run(replace(spec, state=())).outcome is Outcome.FAIL  # the image's own files


def test_the_fake_carries_empty_folders_too() -> None:
    backend = FakeBackend([])
    with backend.start(backend.prepare(_IMAGE), Limits(), NetworkPolicy()) as sandbox:
        sandbox.write_files([SandboxFile("a/"), SandboxFile("b/"), SandboxFile("b/f")], "/out")
        plain = sandbox.read_files([ArtifactSpec("/out")], cap_bytes=100)
        full = sandbox.read_files([ArtifactSpec("/out", has_folders=True)], cap_bytes=100)
    assert [file.path for file in plain] == ["/out/b/f"]
    assert [file.path for file in full] == ["/out/a/", "/out/b/f"]


def test_deep_folders_are_carried_and_too_deep_ones_are_no_quota(runner: Runner) -> None:
    deep = 'cd out; perl -e \'for (1..{}) {{ mkdir "d"; chdir "d" }} `echo found > f`\''
    judge = "[ $(find /app/out -name f -exec cat {} + | head -1) = found ]"
    result = runner.run(_spec(deep.format(300), judge))
    assert (result.outcome, result.solver_end) == (Outcome.PASS, SolverEnd.DONE), result
    result = runner.run(_spec(deep.format(900), judge))
    assert (result.outcome, result.solver_end) == (Outcome.FAIL, SolverEnd.DONE), result
    assert any("nested more than 800 deep" in note for note in result.notes)


def test_work_that_fills_the_disk_can_be_judged(runner: Runner) -> None:
    solve = f"head -c {15 * MIB} /dev/zero > out/big"
    spec = _spec(solve, f"[ $(stat -c %s /app/out/big) = {15 * MIB} ]")
    result = runner.run(replace(spec, limits=Limits(disk_bytes=16 * MIB)))
    assert result.outcome is Outcome.PASS, result


def test_an_image_that_brings_its_tests_keeps_them(runner: Runner) -> None:
    script = (
        b"#!/bin/bash\ncat /tests/word /app/out/said > /logs/verifier/seen\n"
        b"[ $(cat /app/out/said) = $(cat /tests/word) ] && echo 1 > /logs/verifier/reward.txt\n"
    )
    files = (
        SandboxFile("Dockerfile", b"FROM debian:bookworm-slim\nWORKDIR /app\nCOPY . /tests/\n"),
        SandboxFile("test.sh", script, 0o755),
        SandboxFile("word", b"sesame\n"),
    )
    spec = _spec("echo sesame > out/said", "false")
    own = replace(spec.verifier, files=(), image=replace(_IMAGE, files=files))
    result = runner.run(replace(spec, verifier=own))
    assert result.outcome is Outcome.PASS, result


_FORK = "for (1..60) { $p = fork // last; $p or do { sleep 1; exit } } sleep 1"
_OPEN = 'while (open my $f, "<", "/dev/null") { push @x, $f }'


@pytest.mark.parametrize(
    ("solve", "limits", "struck"),
    [
        (f"perl -e '{_FORK}'", Limits(processes=20), "processes"),
        (f"perl -e '{_OPEN} die $!'", Limits(descriptors=40), "descriptors"),
        (f"perl -e '{_OPEN} sleep 1'", Limits(descriptors=50), "descriptors"),
        (f"head -c {20 * MIB} /dev/zero > big", Limits(disk_bytes=8 * MIB), "disk"),
        ("perl -e '$x = \"x\" x (200 << 20); sleep 5'", Limits(memory_bytes=60 * MIB), "memory"),
    ],
)  # fmt: skip
def test_a_limit_that_strikes_is_named(
    runner: Runner, solve: str, limits: Limits, struck: str
) -> None:
    result = runner.run(_spec(solve, "true", limits=limits))
    assert result.usage.struck == (struck,), result
    assert f"the {struck} limit struck while solving" in result.notes
    expected = SolverEnd.OUT_OF_MEMORY if struck == "memory" else SolverEnd.QUOTA
    assert result.solver_end is expected
    assert result.outcome is Outcome.PASS


def test_what_stays_below_its_limits_strikes_none(runner: Runner) -> None:
    solve = "for n in $(seq 15); do sleep 0.2 & done; wait"
    result = runner.run(_spec(solve, "true", limits=Limits(processes=20, descriptors=64)))
    assert (result.usage.struck, result.solver_end) == ((), SolverEnd.DONE)
    assert result.usage.peak_processes in range(15, 18)


@pytest.mark.parametrize(
    "target",
    [
        *("/tests", "/", "../../tests", "/proc/self/root/tests", "/logs/verifier", "/logs"),
        *("/var/run/../tests", "/dev/fd/../root/tests", "kept/../../var/run/.."),
    ],
)
def test_an_output_folder_that_is_a_link_to_the_tests_is_not_carried(
    runner: Runner, target: str
) -> None:
    judge = "[ -e /app/out/test.sh ] || [ -L /app/out ]"
    result = runner.run(_spec(f"rm -r out; ln -s {target} out", judge))
    assert result.outcome is Outcome.FAIL, result
    assert any("dropped: /app/out" in note for note in result.notes)


def test_links_among_the_outputs_and_to_the_image_are_carried(runner: Runner) -> None:
    judge = "[ $(cat /app/out/a) = 1 ] && [ -f /app/out/b ] && [ -f /app/out/c ]"
    solve = "cd out; echo 1 > x; ln -s x a; ln -s /app/kept/one.txt b; ln -s ../kept/one.txt c"
    assert runner.run(_spec(solve, judge)).outcome is Outcome.PASS
    judge = "[ $(cat /app/out/d) = 1 ] && [ $(cat /logs/artifacts/last) = 1 ]"
    solve = (
        "cd out; echo 1 > x; ln -s /app/out/../out/x d;"
        " cd /logs/artifacts; echo 1 > run-1; ln -s run-1 last"
    )
    assert runner.run(_spec(solve, judge)).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("judge", "limits", "struck"),
    [
        (f"perl -e '{_FORK}; exit 1'", Limits(processes=20), "processes"),
        (f"perl -e '{_OPEN} sleep 1; exit 1'", Limits(descriptors=50), "descriptors"),
    ],
)
def test_tests_that_hit_a_limit_of_the_system_are_no_verdict(
    runner: Runner, judge: str, limits: Limits, struck: str
) -> None:
    result = runner.run(_spec("true", judge, limits=limits))
    assert result.outcome is Outcome.INVALID_REWARD, result
    assert f"the {struck} limit struck" in result.error
