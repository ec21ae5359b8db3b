"""Whole trials: a solver, what it leaves, and who judges it."""

from __future__ import annotations

import time
from dataclasses import replace

from sandbox.contracts import (
    ArtifactSpec,
    Limits,
    Outcome,
    SandboxFile,
    SolverEnd,
    SolverSpec,
    TrialResult,
    TrialSpec,
    VerifierSpec,
)
from sandbox.trial import Runner
from tests.sandbox.conformance_bench import MIB, Bench

_HONEST = "mkdir out; tr a-z A-Z < data/one.txt > out/answer"
_REWARD = "/logs/verifier/reward.txt"
_JUDGE = f'[ "$(cat /app/out/answer 2>/dev/null)" = ONE ]; echo $((! $?)) > {_REWARD}\n'


def _judge(script: str = _JUDGE, *, is_separate: bool = True) -> VerifierSpec:
    test = SandboxFile("test.sh", b"#!/bin/bash\n" + script.encode())
    return VerifierSpec((test,), is_separate, (ArtifactSpec("/app/out"),), timeout_seconds=60)


def _run(bench: Bench, command: str | None, verifier: VerifierSpec, **more: object) -> TrialResult:
    solver = SolverSpec("solver", (SandboxFile("solve.sh", b"", 0o755),), command)
    spec = replace(TrialSpec(bench.spec(), solver, verifier, Limits(cpus=1)), **more)
    return Runner(bench.backend).run(spec)


def honest_work_is_rewarded_and_nothing_is_not(bench: Bench) -> None:
    for is_separate in (True, False):
        judge = _judge(is_separate=is_separate)
        honest, idle = _run(bench, _HONEST, judge), _run(bench, None, judge)
        assert (honest.outcome, honest.reward, honest.error) == (Outcome.PASS, 1.0, "")
        assert (idle.outcome, idle.reward) == (Outcome.FAIL, 0.0)
        assert honest.sandboxes == 1 + is_separate
        phases = dict(honest.phases)
        assert {"start", "solver", "collect", "verifier", "stop"} <= set(phases)
        assert all(0 <= seconds <= honest.seconds for seconds in phases.values())
        assert (honest.usage.cpu_seconds or 0) > 0


def tests_and_solution_are_out_of_sight_while_solving(bench: Bench) -> None:
    look = (
        "for d in /tests /logs/verifier; do [ ! -e $d ] || find $d -mindepth 1; done; ls /solution"
    )
    judge = "ls -d /solution 2>/dev/null; ls /tests; " + _JUDGE
    for is_separate, seen in ((True, b"test.sh\n"), (False, b"/solution\ntest.sh\n")):
        result = _run(bench, f"{look}; {_HONEST}", _judge(judge, is_separate=is_separate))
        assert (result.solver_output, result.verifier_output) == (b"solve.sh\n", seen)
    bare = SolverSpec("bare", (), f"[ ! -e /solution ] && [ ! -e /tests/test.sh ] && {_HONEST}")
    assert _run(bench, None, _judge(), solver=bare).is_passed


def a_reward_written_in_advance_counts_for_nothing(bench: Bench) -> None:
    cheat = f"mkdir -p /logs/verifier /tests; echo 1 > {_REWARD}; echo '{{\"reward\":1}}' >"
    cheat += " /logs/verifier/reward.json; echo 'exit 0' > /tests/extra"
    links = "rm -rf /logs /tests; ln -s /app /logs; ln -s /app /tests; mkdir /app/verifier"
    for command in (cheat, links):
        for is_separate in (True, False):
            result = _run(bench, command, _judge(is_separate=is_separate))
            assert (result.outcome, result.reward) == (Outcome.FAIL, 0.0), result
    result = _run(bench, cheat, _judge("true", is_separate=False))
    assert (result.outcome, result.reward) == (Outcome.INVALID_REWARD, None)


def services_live_on_to_a_shared_verifier_only(bench: Bench) -> None:
    serve = "mkfifo /tmp/ask /tmp/say; (while :; do cat /tmp/ask; echo yes > /tmp/say; done) "
    serve += ">/dev/null 2>&1 & "
    ask = "timeout 5 bash -c 'echo > /tmp/ask && cat /tmp/say' | grep -q yes; "
    ask += f"echo $((! $?)) > {_REWARD}"
    assert _run(bench, serve, _judge(ask, is_separate=False)).outcome is Outcome.PASS
    assert _run(bench, serve, _judge(ask)).outcome is Outcome.FAIL


def artifacts_arrive_as_they_were_left(bench: Bench) -> None:
    make = "mkdir -p out/d; cd out; printf 'x\\0y' > $'bytes\\xff\\n'; echo '#!/bin/bash' > run; "
    make += "chmod 750 run; ln -s /nowhere dangling; ln run d/hard; mkfifo pipe; rm -r /app/data"
    show = "cd /app/out; find . -printf '%P %y %m %l|' | LC_ALL=C sort -z | tr '|' '\\n' | sort;"
    show += " od -c bytes* | head -1; ls /app/data"
    judge = _judge(f"{show} > /app/seen 2>&1; cat /app/seen; echo 1 > {_REWARD}")
    result = _run(bench, make, judge, keep_state=True)
    assert result.outcome is Outcome.PASS
    assert [f.path for f in result.state or ()] == [
        *("/app/out/bytes\udcff\n", "/app/out/d/hard", "/app/out/dangling", "/app/out/run"),
    ]
    for words in (
        b"run f 750",
        b"d/hard f 750",
        b"dangling l 777 /nowhere",
        b"x  \\0   y",
        b"one.txt",
    ):
        assert words in result.verifier_output, result.verifier_output
    assert b"pipe" not in result.verifier_output
    again = _run(bench, make, judge)
    assert again.state_digest == result.state_digest


def a_solver_out_of_time_is_judged_all_the_same(bench: Bench) -> None:
    for command, outcome in ((f"{_HONEST}; sleep 60", Outcome.PASS), ("sleep 60", Outcome.FAIL)):
        for is_separate in (True, False):
            solver = SolverSpec("slow", (), command, timeout_seconds=1.0)
            judge = _judge(is_separate=is_separate)
            result = _run(bench, None, judge, solver=solver)
            assert (result.outcome, result.solver_end) == (outcome, SolverEnd.TIMEOUT)


def a_verifier_out_of_time_is_a_fault(bench: Bench) -> None:
    judge = replace(_judge(f"echo 1 > {_REWARD}; sleep 60"), timeout_seconds=1.0)
    started = time.monotonic()
    result = _run(bench, _HONEST, judge)
    assert (result.outcome, result.reward) == (Outcome.INFRA_ERROR, None)
    assert "verifier did not end" in result.error
    assert time.monotonic() - started < 40


def a_solver_that_destroys_its_sandbox_gets_its_verdict(bench: Bench) -> None:
    remove = "rm -rf /etc /var /tmp /logs /lib /lib64 /bin /sbin /usr 2>/dev/null"
    for end in ("kill -9 -1", remove):
        result = _run(bench, f"{_HONEST}; {end}; kill -9 $$", _judge())
        assert (result.outcome, result.solver_exit_status) == (Outcome.PASS, 137), result


def memory_and_disk_are_labels_of_the_solver(bench: Bench) -> None:
    hog = f"{_HONEST}; perl -e '$x = \"x\" x (400 << 20)'"
    result = _run(bench, hog, _judge(), limits=Limits(memory_bytes=100 * MIB))
    assert (result.outcome, result.solver_end) == (Outcome.PASS, SolverEnd.OUT_OF_MEMORY)
    assert any("memory limit" in note for note in result.notes)
    fill = "mkdir out; head -c 60000000 /dev/zero > out/big"
    result = _run(bench, fill, _judge(), limits=Limits(disk_bytes=16 * MIB))
    assert (result.outcome, result.solver_end) == (Outcome.FAIL, SolverEnd.QUOTA), result
    assert result.usage.is_disk_full


def a_limit_that_cuts_the_verifier_short_gives_no_reward(bench: Bench) -> None:
    judge = f"perl -e '$x = \"x\" x (400 << 20)'; echo $((! $?)) > {_REWARD}"
    result = _run(bench, _HONEST, _judge(judge), limits=Limits(memory_bytes=100 * MIB))
    assert (result.outcome, result.reward) == (Outcome.INVALID_REWARD, None)
    assert "memory limit struck" in result.error


def a_verifier_may_have_its_own_user(bench: Bench) -> None:
    if not bench.has_users:
        return
    judge = replace(_judge(f"id -u; echo 1 > {_REWARD}"), user="nobody")
    result = _run(bench, _HONEST, judge)
    assert (result.outcome, result.verifier_output) == (Outcome.PASS, b"65534\n")


def a_trial_may_have_another_host_name(bench: Bench) -> None:
    ask = "cat /etc/hostname /proc/sys/kernel/hostname; echo $HOSTNAME"
    for is_separate in (True, False):
        judge = _judge(f"{ask}\n{_JUDGE}", is_separate=is_separate)
        for name in ("sandbox", "elsewhere"):
            result = _run(bench, f"{ask}; {_HONEST}", judge, host_name=name)
            assert result.is_passed
            for said in (result.solver_output, result.verifier_output):
                assert said.decode().split() == [name] * 3


CHECKS = (
    honest_work_is_rewarded_and_nothing_is_not,
    tests_and_solution_are_out_of_sight_while_solving,
    a_reward_written_in_advance_counts_for_nothing,
    services_live_on_to_a_shared_verifier_only,
    a_trial_may_have_another_host_name,
    artifacts_arrive_as_they_were_left,
    a_solver_out_of_time_is_judged_all_the_same,
    a_verifier_out_of_time_is_a_fault,
    a_solver_that_destroys_its_sandbox_gets_its_verdict,
    memory_and_disk_are_labels_of_the_solver,
    a_limit_that_cuts_the_verifier_short_gives_no_reward,
    a_verifier_may_have_its_own_user,
)
