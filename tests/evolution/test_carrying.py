"""From a shared verifier to a separate one: only where that is proved, and never against a word."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from evolution.bundle import Bundle, with_config
from evolution.carrying import Search, known_places, outputs, separated, wants_carrying
from evolution.contracts import GateResult, StepConfig
from evolution.gates.case import Case
from evolution.gates.desk import Desk
from evolution.memory import MemoryLog
from sandbox.contracts import SandboxFile
from sandbox.trial import Runner
from tests.evolution.real_sandbox import orders, runner, subject_of

__all__ = ["runner"]  # a fixture
FILE = SandboxFile


def shared(*changes: SandboxFile) -> Bundle:
    """The small environment as a public one would be: no artifacts, no verifier mode."""
    return with_config(
        orders(*changes), {("artifacts",): None, ("verifier", "environment_mode"): None}
    )


def search(bundle: Bundle, runner: Runner) -> tuple[Search, GateResult]:
    found = Search(Case(subject_of(bundle), StepConfig(seed=1)))
    with ThreadPoolExecutor(2) as pool:
        answers = Desk(runner, MemoryLog(), pool).settle({"carrying": found.steps()})
    return found, answers["carrying"]


@pytest.mark.bubblewrap
class TestReal:
    def test_outputs_are_found_declared_and_proved(self, runner: Runner) -> None:
        bundle = shared()
        found, answer = search(bundle, runner)
        assert found.artifacts == ("/app/out",)
        assert answer.reason == "/app/out is carried into a clean sandbox and judged there"
        apart = separated(bundle, found.artifacts)
        assert apart.config["artifacts"] == ["/app/out"]
        assert apart.config["verifier"]["environment_mode"] == "separate"
        assert bundle.text("task.toml").splitlines()[0] == apart.text("task.toml").splitlines()[0]

    def test_what_does_not_travel_stays_in_its_sandbox(self, runner: Runner) -> None:
        work = b"#!/bin/bash\nmkdir -p out && echo 1 > out/a && echo ready > /var/mark\n"
        judge = b"#!/bin/bash\n[ -s /var/mark ]; echo $((! $?)) > /logs/verifier/reward.txt\n"
        bundle = shared(FILE("solution/solve.sh", work, 0o755), FILE("tests/test.sh", judge, 0o755))
        found, answer = search(bundle, runner)
        assert found.artifacts == ()
        assert answer.reason == "judged apart with /app/out, its own solution fails"

    def test_work_that_deletes_stays_in_its_sandbox(self, runner: Runner) -> None:
        work = b"#!/bin/bash\nrm /app/data/orders.csv\n"
        judge = b"#!/bin/bash\n[ ! -e data/orders.csv ]; echo $((! $?)) > /logs/verifier/reward.txt"
        bundle = shared(FILE("solution/solve.sh", work, 0o755), FILE("tests/test.sh", judge, 0o755))
        _, answer = search(bundle, runner)
        assert answer.reason == (
            "its work deletes /app/data/orders.csv, which a clean sandbox would have again"
        )


def test_only_who_has_not_said_how_is_rearranged() -> None:
    assert wants_carrying(shared())
    assert not wants_carrying(orders())
    said = with_config(shared(), {("verifier", "environment_mode"): "shared"})
    assert not wants_carrying(said)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), ("/app/a.txt",), ("/app/a.txt",)),
        (("/app/in",), ("/app/in", "/app/out/a", "/app/out/deep/b"), ("/app/out",)),
        (("/app/in/a",), ("/app/in/a", "/app/in/b"), ("/app/in/b",)),
        (("/app/out/",), ("/app/out/a",), ("/app/out",)),
        (("/app/",), ("/app/a", "/app/new/"), ("/app/a",)),
        (("/app/in/a",), ("/app/in/a", "/app/__pycache__/x.pyc"), None),
        (("/app/in/a",), ("/app/in/a",), None),
        (("/app/gone", "/app/a"), ("/app/a", "/app/b"), None),
        ((), tuple(f"/app/{number}" for number in range(50)), None),
    ],
)
def test_outputs_are_named_as_high_as_they_are_new(
    before: tuple[str, ...], after: tuple[str, ...], expected: tuple[str, ...] | None
) -> None:
    found = outputs(map(FILE, before), map(FILE, after))
    assert found == expected if expected else isinstance(found, str)


def test_a_changed_file_is_an_output() -> None:
    old, new = FILE("/app/a", b"1"), FILE("/app/a", b"2")
    assert outputs([old], [new]) == ("/app/a",)


def test_folders_are_known_from_the_image_and_the_instruction() -> None:
    told = FILE("instruction.md", b"Write `/output/x.json`, see /etc/hosts and https://a.b/c/d.\n")
    assert known_places(orders(told)) == ("/app", "/output")
