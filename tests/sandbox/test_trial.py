"""A trial says what happened: reward, label, evidence; and never turns a fault into reward 0."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.fake import FakeBackend, FakeCommand, FakeSandbox
from sandbox.contracts import (
    ArtifactSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    Outcome,
    SandboxFile,
    SolverEnd,
    SolverSpec,
    TrialResult,
    TrialSpec,
    Usage,
    VerifierSpec,
    tree_digest,
)
from sandbox.errors import SandboxUnavailable
from sandbox.trial import Runner
from tests.sandbox.conformance import MIB, image_spec

_CHECK = b"""import json
from pathlib import Path
found = Path('/app/out/answer.txt')
good = found.is_file() and found.read_text() == 'ONE\\n'
Path('/logs/verifier/reward.txt').write_text('1' if good else '0')
tests = [{'name': 'answer', 'status': 'passed' if good else 'failed', 'duration': 1}]
Path('/logs/verifier/ctrf.json').write_text(json.dumps({'results': {'tests': tests}}))
print('judged')
"""
_TESTS = (
    SandboxFile("test.sh", b"#!/bin/bash\npython3 -I -B /tests/check.py\n"),
    SandboxFile("check.py", _CHECK),
)
_HONEST = "mkdir -p out && tr a-z A-Z < data/one.txt > out/answer.txt"


def _spec(command: str | None = _HONEST, **changes: object) -> TrialSpec:
    verifier = VerifierSpec(_TESTS, artifacts=(ArtifactSpec("/app/out"),), timeout_seconds=20)
    spec = TrialSpec(image_spec(), SolverSpec("s", (), command, timeout_seconds=20), verifier)
    return replace(spec, **changes)  # type: ignore[arg-type]


def _tests(script: str, **changes: object) -> VerifierSpec:
    files = (SandboxFile("test.sh", b"#!/bin/bash\n" + script.encode()),)
    verifier = VerifierSpec(files, artifacts=(ArtifactSpec("/app/out"),), timeout_seconds=20)
    return replace(verifier, **changes)  # type: ignore[arg-type]


@pytest.fixture
def runner(bubblewrap: BubblewrapBackend) -> Runner:
    return Runner(bubblewrap)


@pytest.mark.bubblewrap
class TestReal:
    def test_tests_that_hang_are_told_with_both_causes(self, runner: Runner) -> None:
        result = runner.run(_spec(verifier=_tests("sleep 60", timeout_seconds=1)))
        assert result.outcome is Outcome.INFRA_ERROR
        assert result.error.startswith("the verifier did not end within 1 s: ")
        assert "its tests hang" in result.error
        assert "machine was too busy" in result.error
        assert "run it again alone" in result.error

    def test_an_honest_solution_passes(self, runner: Runner) -> None:
        solution = (SandboxFile("solve.sh", b"#!/bin/bash\n" + _HONEST.encode() + b"\n", 0o755),)
        solver = SolverSpec("oracle", solution, "/solution/solve.sh", timeout_seconds=20)
        result = runner.run(_spec(solver=solver, keep_state=True))
        assert result.outcome is Outcome.PASS, result
        assert (result.reward, result.solver_end, result.error) == (1.0, SolverEnd.DONE, "")
        assert [(c.name, c.is_passed) for c in result.checks] == [("answer", True)]
        assert result.state == (SandboxFile("/app/out/answer.txt", b"ONE\n"),)
        assert result.state_digest == tree_digest(result.state)
        assert (result.sandboxes, result.backend) == (2, "bubblewrap")
        assert result.verifier_output == b"judged\n"
        phases = dict(result.phases)
        assert {"start", "solver", "collect", "verifier", "stop"} <= set(phases)
        assert sum(phases.values()) <= result.seconds
        assert (result.usage.cpu_seconds or 0) > 0
        assert result.notes == ()

    def test_doing_nothing_fails(self, runner: Runner) -> None:
        result = runner.run(_spec(None))
        assert (result.outcome, result.reward) == (Outcome.FAIL, 0.0)
        assert result.failed_checks == {"answer"}
        assert result.state_digest == tree_digest(())
        assert result.solver_exit_status is None

    def test_a_state_is_judged_without_a_solver(self, runner: Runner) -> None:
        good = (SandboxFile("/app/out/answer.txt", b"ONE\n"),)
        bad = (SandboxFile("/app/out/answer.txt", b"one\n"),)
        assert runner.run(_spec("exit 1", state=good)).is_passed
        result = runner.run(_spec(state=bad))
        assert (result.outcome, result.sandboxes) == (Outcome.FAIL, 1)
        shared = replace(_spec().verifier, is_separate=False)
        assert runner.run(_spec(state=good, verifier=shared)).is_passed

    def test_what_the_solver_deleted_in_an_artifact_folder_stays_deleted(
        self, runner: Runner
    ) -> None:
        script = "test -e /app/data/kept -a ! -e /app/data/one.txt && reward=1\n"
        script += "echo ${reward:-0} > /logs/verifier/reward.txt\n"
        verifier = _tests(script, artifacts=(ArtifactSpec("/app/data"),))
        assert runner.run(_spec("rm data/*; touch data/kept", verifier=verifier)).is_passed
        assert not runner.run(_spec("touch data/kept", verifier=verifier)).is_passed

    def test_solution_and_tests_are_out_of_sight(self, runner: Runner) -> None:
        look = (
            "ls -d /solution /tests /logs/verifier/*; mkdir -p /tests; echo spy > /tests/check.py"
        )
        result = runner.run(_spec(f"{look}; {_HONEST}"))
        assert result.is_passed
        assert b"/solution" not in result.solver_output.splitlines()
        shared = replace(_spec().verifier, is_separate=False)
        assert runner.run(_spec(f"{look}; {_HONEST}", verifier=shared)).is_passed

    def test_a_timeout_is_a_label_and_the_work_counts(self, runner: Runner) -> None:
        solver = SolverSpec("slow", (), f"{_HONEST}; sleep 60", timeout_seconds=0.6)
        result = runner.run(_spec(solver=solver))
        assert (result.outcome, result.solver_end) == (Outcome.PASS, SolverEnd.TIMEOUT)
        result = runner.run(_spec(solver=replace(solver, command="sleep 60")))
        assert (result.outcome, result.solver_end) == (Outcome.FAIL, SolverEnd.TIMEOUT)

    def test_memory_and_disk_are_labels_too(self, runner: Runner) -> None:
        limits = Limits(memory_bytes=100 * MIB, disk_bytes=16 * MIB)
        hog = f"{_HONEST}; python3 -c 'x = bytearray(400 << 20)'"
        result = runner.run(_spec(hog, limits=limits))
        assert (result.outcome, result.solver_end) == (Outcome.PASS, SolverEnd.OUT_OF_MEMORY)
        assert "memory limit" in result.notes[0]
        result = runner.run(_spec("head -c 99999999 /dev/zero > /tmp/x", limits=limits))
        assert (result.outcome, result.solver_end) == (Outcome.FAIL, SolverEnd.QUOTA)
        assert result.usage.is_disk_full

    def test_a_verifier_that_a_limit_cuts_short_gives_no_reward(self, runner: Runner) -> None:
        script = "python3 -c 'x = bytearray(400 << 20)'; echo $((! $?)) > /logs/verifier/reward.txt"
        spec = _spec(verifier=_tests(script), limits=Limits(memory_bytes=100 * MIB))
        result = runner.run(spec)
        assert (result.outcome, result.rewards) == (Outcome.INVALID_REWARD, ())
        assert "memory limit struck" in result.error

    def test_services_live_to_a_shared_verifier_only(self, runner: Runner) -> None:
        serve = "python3 -m http.server 8123 --bind 127.0.0.1 --directory data >/dev/null 2>&1 &"
        serve += "until (echo > /dev/tcp/127.0.0.1/8123) 2>/dev/null; do sleep 0.05; done"
        ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/one.txt').read())"
        script = f'python3 -c "{ask}" && echo 1 > /logs/verifier/reward.txt\n'
        script += "[ -f /logs/verifier/reward.txt ] || echo 0 > /logs/verifier/reward.txt\n"
        shared = runner.run(_spec(serve, verifier=_tests(script, is_separate=False)))
        apart = runner.run(_spec(serve, verifier=_tests(script)))
        assert (shared.outcome, apart.outcome) == (Outcome.PASS, Outcome.FAIL)

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("true", "no reward"),
            ("echo nan > /logs/verifier/reward.txt", "finite"),
            ("echo > /logs/verifier/reward.txt", "empty"),
            ("ln -s /tests/test.sh /logs/verifier/reward.txt", "link"),
            ("mkdir -p /logs/verifier/reward.txt/x; echo > /logs/verifier/reward.txt/y", "folder"),
            ("head -c 99999 /dev/zero > /logs/verifier/reward.txt", "64 KiB"),
            ("head -c 9999999 /dev/zero > /logs/verifier/reward.txt", "64 KiB"),
            ("echo '{\"reward\": true}' > /logs/verifier/reward.json", "not a number"),
            ("no-such-tool || exit 3", "no reward"),
        ],
    )
    def test_a_bad_reward_is_never_zero(self, runner: Runner, script: str, reason: str) -> None:
        result = runner.run(_spec(verifier=_tests(script)))
        assert result.outcome is Outcome.INVALID_REWARD
        assert reason in result.error
        assert (result.rewards, result.reward) == ((), None)

    def test_a_verifier_that_hangs_is_a_fault_not_a_failure(self, runner: Runner) -> None:
        script = "echo 1 > /logs/verifier/reward.txt; sleep 60"
        result = runner.run(_spec(verifier=_tests(script, timeout_seconds=0.5)))
        assert (result.outcome, result.rewards) == (Outcome.INFRA_ERROR, ())
        assert "verifier did not end" in result.error

    def test_what_the_back_end_refuses_is_a_fault_with_its_reason(self, runner: Runner) -> None:
        result = runner.run(_spec(network=NetworkPolicy(NetworkMode.PUBLIC)))
        assert (result.outcome, result.sandboxes) == (Outcome.INFRA_ERROR, 0)
        assert "public" in result.error
        result = runner.run(_spec(image=image_spec(b"FROM a\nRUN echo because; false\n")))
        assert result.outcome is Outcome.INFRA_ERROR
        assert "because" in result.error

    def test_a_reward_written_in_advance_counts_for_nothing(self, runner: Runner) -> None:
        cheat = (
            "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\":1}' > /logs/verifier/reward.json"
        )
        cheat += "; mkdir -p /tests; printf 'echo 1 > /logs/verifier/reward.txt' > /tests/extra.sh"
        for is_separate in (True, False):
            verifier = replace(_spec().verifier, is_separate=is_separate)
            assert runner.run(_spec(cheat, verifier=verifier)).outcome is Outcome.FAIL
            links = "rm -rf /logs/verifier /tests; ln -s /app /logs/verifier; ln -s /app /tests"
            assert runner.run(_spec(links, verifier=verifier)).outcome is Outcome.FAIL

    def test_artifacts_beyond_the_cap_are_not_carried(self, runner: Runner) -> None:
        verifier = replace(_spec().verifier, artifact_cap_bytes=1000)
        result = runner.run(_spec(f"{_HONEST}; head -c 9999 /dev/zero > out/x", verifier=verifier))
        assert (result.outcome, result.solver_end) == (Outcome.FAIL, SolverEnd.QUOTA)
        assert "not carried over" in result.notes[0]

    def test_output_keeps_the_last_bytes(self, runner: Runner) -> None:
        result = runner.run(_spec("seq 100000; echo last; echo error >&2"))
        assert len(result.solver_output) == 8192
        assert result.solver_output.endswith(b"last\nerror\n")

    def test_a_verifier_may_have_its_own_user_and_image(self, runner: Runner) -> None:
        image = image_spec(b"FROM a\nWORKDIR /judge\nRUN echo yes > marker\n")
        script = "cat marker && echo 1 > /logs/verifier/reward.txt"
        result = runner.run(_spec(verifier=_tests(script, image=image)))
        assert (result.outcome, result.verifier_output) == (Outcome.PASS, b"yes\n")
        script = "id -u; echo 1 > /logs/verifier/reward.txt"
        result = runner.run(_spec(verifier=_tests(script, user="nobody")))
        if runner.backend.id_count > 1:  # type: ignore[attr-defined]
            assert (result.outcome, result.verifier_output) == (Outcome.PASS, b"65534\n")
        else:
            assert result.outcome is Outcome.INFRA_ERROR

    def test_a_trace_comes_with_the_result(self, runner: Runner) -> None:
        trace = runner.run(_spec(is_traced=True)).trace
        assert trace is not None
        assert trace.programs == ("mkdir", "tr")
        assert "/app/data/one.txt" in trace.read
        assert trace.written == ("/app/out/answer.txt",)

    def test_many_trials_at_once_do_not_mix(self, runner: Runner) -> None:
        def run(number: int) -> TrialResult:
            command = _HONEST if number % 2 else f"mkdir out; echo {number} > out/answer.txt"
            return runner.run(_spec(command, keep_state=True))

        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(run, range(18)))
        for number, result in enumerate(results):
            assert result.is_passed == bool(number % 2), result
            assert result.state is not None
            assert result.state[0].data == (b"ONE\n" if number % 2 else f"{number}\n".encode())

    def test_the_same_trial_leaves_the_same_digest(self, runner: Runner) -> None:
        digests = {runner.run(_spec()).state_digest for _ in range(3)}
        assert len(digests) == 1

    def test_nothing_of_one_trial_takes_long(self, runner: Runner) -> None:
        runner.run(_spec())
        started = time.monotonic()
        runner.run(_spec())
        assert time.monotonic() - started < 3.0  # about 0.08 s on an idle machine


_REWARD = SandboxFile("/logs/verifier/reward.txt", b"1")


def test_machinery_that_breaks_is_never_a_reward() -> None:
    scripts = (
        [FakeCommand(error="gone while solving")],
        [FakeCommand(), FakeCommand(writes=(_REWARD,), error="gone while judging")],
        [FakeCommand(), FakeCommand(writes=(_REWARD,), timed_out=True)],
    )
    for script in scripts:
        backend = FakeBackend(script)
        result = Runner(backend).run(_spec())
        assert (result.outcome, result.rewards) == (Outcome.INFRA_ERROR, ())
        assert result.error
        assert backend.started == backend.stopped > 0


def test_a_back_end_that_does_not_start_is_a_fault() -> None:
    class Absent(FakeBackend):
        def start(self, *_what: object, **_how: object) -> FakeSandbox:
            raise SandboxUnavailable("nobody home")

    result = Runner(Absent()).run(_spec())
    assert (result.outcome, result.error) == (Outcome.INFRA_ERROR, "nobody home")


@pytest.mark.parametrize(
    ("first", "end"),
    [
        (FakeCommand(timed_out=True), SolverEnd.TIMEOUT),
        (FakeCommand(usage=Usage(oom_kills=1)), SolverEnd.OUT_OF_MEMORY),
        (FakeCommand(usage=Usage(is_disk_full=True)), SolverEnd.QUOTA),
        (FakeCommand(usage=Usage(peak_processes=600)), SolverEnd.QUOTA),
        (FakeCommand(1), SolverEnd.DONE),
    ],
)
def test_the_end_of_solving_is_a_label_beside_the_outcome(
    first: FakeCommand, end: SolverEnd
) -> None:
    result = Runner(FakeBackend([first, FakeCommand(writes=(_REWARD,))])).run(_spec())
    assert (result.outcome, result.solver_end) == (Outcome.PASS, end)
