"""What runs the sandboxes is killed in the middle of the gates, again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from bench import ways
from evolution.bundle import Bundle
from evolution.contracts import GateStatus, StepConfig, Subject, Verdict
from evolution.gates.case import Depth
from evolution.gates.protocol import verify_bundle
from evolution.memory import MemoryGates, MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import Image, ImageSpec, Outcome, SandboxFile, TrialResult, TrialSpec
from sandbox.trial import Runner
from tests.evolution.real_sandbox import orders, subject_of
from tests.sandbox.fragile import bubblewrap_that_may_die, remove_all_of

CONFIG = StepConfig(seed=3, oracle_runs=2, nop_runs=2, mutant_count=12)
Cut = Callable[[], None]


@dataclass(frozen=True)
class Way:
    """A way to run sandboxes that can be cut off, and be whole again."""

    runner: Runner
    cut: Cut
    heal: Cut = lambda: None


@dataclass
class Dying:
    """A runner whose back-end is cut off while it works, once so many trials were begun."""

    runner: TrialRunner
    cut: Cut
    lives: int
    begun: int = 0
    lost: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, spec: ImageSpec) -> Image:
        """The image, from a back-end that lives."""
        return self.runner.prepare(spec)

    def run(self, spec: TrialSpec) -> TrialResult:
        """A trial; cut off in its middle when it is one too many."""
        with self._lock:
            self.begun += 1
            is_last = self.begun > self.lives
        timer = threading.Timer(0.03, self.cut)
        if is_last:
            timer.start()
        result = self.runner.run(spec)
        if is_last:
            timer.join()
        with self._lock:
            self.lost += result.outcome is Outcome.INFRA_ERROR
        return result


def judged(bundle: Bundle, runner: TrialRunner, memory: MemoryGates, depth: Depth) -> Verdict:
    """A verdict by the policy for what was made here, which every gate can block."""
    subject: Subject = replace(subject_of(bundle), generation=1)
    return verify_bundle(subject, None, runner, MemoryLog(), CONFIG, memory=memory, depth=depth)


def killed_and_resumed(bundle: Bundle, way: Way, lives: tuple[int, ...], depth: Depth) -> None:
    """Cut off after so many trials, each time in a new verification, and whole in the end."""
    memory, known, runner = MemoryGates(), 0, way.runner
    for number, life in enumerate(lives):
        dying = Dying(runner, way.cut, life)
        verdict = judged(bundle, dying, memory, depth)
        assert dying.lost > 0, "the cut came too late for this test"
        answers = {gate.gate: gate for gate in verdict.gates}
        assert verdict.status is GateStatus.INCONCLUSIVE
        assert not verdict.failed
        struck = [a for a in answers.values() if a.status is GateStatus.INCONCLUSIVE]
        assert struck
        assert all("gave no result" in a.reason or "mutants" in a.reason for a in struck)
        reused = {a.gate for a in answers.values() if a.source}
        assert len(reused) == known, "what was finished before is not asked again"
        memory.keep(verdict, str(number))
        known = len(memory.known)
        way.heal()
    whole = Dying(runner, way.cut, 10_000)
    verdict = judged(bundle, whole, memory, depth)
    assert verdict.status is GateStatus.PASSED, verdict.failed
    assert {a.gate for a in verdict.gates if a.source} == {gate for gate, _ in memory.known}
    assert whole.lost == 0
    assert known > 0, "nothing was finished before the cut"
    assert whole.begun > 0


SOLVE = "#!/bin/bash\nmkdir -p /app/out; for n in 1 2 3 4 5 6; do echo row-$n-$((n * 17)); done"
SOLVE += " > /app/out/rows.txt\n"
ROWS = "".join(f"row-{number}-{number * 17}\n" for number in range(1, 7))
TEST = """\
#!/bin/bash
[ "$(cat /app/out/rows.txt 2>/dev/null)" = "$(cat /tests/rows.txt)" ]
echo $((1 - $?)) > /logs/verifier/reward.txt
"""


def rows() -> Bundle:
    """Work that any image with bash can do."""
    without = ("environment/data/orders.csv", "solution/report.py", "tests/run_checks.py")
    instruction = "Write six rows, `row-N-M` with M = 17 N, into `/app/out/rows.txt`.\n"
    return orders(
        SandboxFile("environment/Dockerfile", b"FROM debian:bookworm-slim\nWORKDIR /app\n"),
        SandboxFile("instruction.md", instruction.encode()),
        SandboxFile("solution/solve.sh", SOLVE.encode(), 0o755),
        SandboxFile("tests/test.sh", TEST.encode(), 0o755),
        SandboxFile("tests/rows.txt", ROWS.encode()),
        without=(*without, "tests/checks.py"),
    )


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_a_bubblewrap_server_that_dies_again_and_again_fails_no_gate(runner: Runner) -> None:
    with bubblewrap_that_may_die(runner.backend) as (backend, cut):  # type: ignore[arg-type]
        killed_and_resumed(rows(), Way(Runner(backend), cut), (4, 34), Depth.FULL)


@contextmanager
def docker_behind_proxy(home: Path) -> Iterator[Way]:
    with ways.opened_behind_proxy("docker", home) as (backend, proxy):
        assert proxy is not None
        try:
            cut = partial(proxy.break_at, 1, is_gone_after=True)
            yield Way(Runner(backend), cut, proxy.disarm)
        finally:
            proxy.disarm()
            remove_all_of(backend)  # type: ignore[arg-type]


@pytest.mark.docker
@pytest.mark.slow
def test_an_engine_that_is_lost_in_the_middle_fails_no_gate(tmp_path: Path) -> None:
    with docker_behind_proxy(tmp_path) as way:
        killed_and_resumed(rows(), way, (7,), Depth.QUICK)
