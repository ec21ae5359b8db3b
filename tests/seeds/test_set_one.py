"""Five bundled seeds: the reference solution passes, nothing and damaged work do not."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from evolution.bundle import Bundle
from evolution.execution import nop, oracle, solution_solver, trial_spec
from evolution.reading import FoundBundle, find_bundles
from evolution.sequence import Pair
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import Outcome, SandboxFile, TrialResult
from sandbox.trial import Runner

SEEDS = Path(__file__).parents[2] / "seeds"
SLUGS = (
    "broken-backup-script",
    "cron-schedule-audit",
    "nginx-log-forensics",
    "sales-ledger-repair",
    "service-config-migration",
)
SIZE_CAP_BYTES = 300_000

Damage = Callable[[bytes], bytes]
State = tuple[SandboxFile, ...]


def _without_its_middle_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    middle = len(lines) // 2
    return b"".join(lines[:middle] + lines[middle + 1 :])


def _with_its_last_number_changed(data: bytes) -> bytes:
    last = list(re.finditer(rb"\d+", data))[-1]
    return data[: last.start()] + str(int(last[0]) + 1).encode() + data[last.end() :]


DAMAGES: dict[str, Damage] = {
    "emptied": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "a line dropped": _without_its_middle_line,
    "a number changed": _with_its_last_number_changed,
}


def _read(slug: str) -> Bundle:
    (found,) = find_bundles(SEEDS / slug)
    assert isinstance(found, FoundBundle), f"{slug} was refused: {found}"
    return found.bundle


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Trials in real sandboxes, with images of their own."""
    home = tmp_path_factory.mktemp("sandboxes")
    backend = BubblewrapBackend(home / "runtime", home / "images")
    yield Runner(backend)
    backend.close()


@dataclass(frozen=True)
class Solved:
    """A seed with what its reference solution came to."""

    bundle: Bundle
    result: TrialResult
    state: State


@pytest.fixture(scope="module", params=SLUGS)
def solved(request: pytest.FixtureRequest, runner: Runner) -> Solved:
    """Each seed, solved once by its reference solution."""
    bundle = _read(request.param)
    result = runner.run(trial_spec(bundle, oracle(bundle), keep_state=True))
    assert result.state is not None, result.error
    return Solved(bundle, result, result.state)


def _judge(runner: Runner, bundle: Bundle, state: State) -> TrialResult:
    return runner.run(trial_spec(bundle, nop(bundle), state=state))


@pytest.mark.bubblewrap
def test_the_reference_solution_passes_every_check(solved: Solved) -> None:
    assert solved.result.outcome is Outcome.PASS, solved.result
    assert solved.result.solver_exit_status == 0
    assert 4 <= len(solved.result.checks) <= 8
    assert not solved.result.failed_checks


@pytest.mark.bubblewrap
def test_the_reference_solution_leaves_the_same_bytes_again(solved: Solved, runner: Runner) -> None:
    bundle = solved.bundle
    again = runner.run(trial_spec(bundle, oracle(bundle), keep_state=True))
    assert again.state == solved.state


@pytest.mark.bubblewrap
def test_doing_nothing_fails_most_checks(solved: Solved, runner: Runner) -> None:
    result = runner.run(trial_spec(solved.bundle, nop(solved.bundle)))
    assert result.outcome is Outcome.FAIL, result
    assert len(result.failed_checks) > len(result.checks) / 2


def _assert_noticed(runner: Runner, solved: Solved, file: SandboxFile, damage: str) -> None:
    broken = replace(file, data=DAMAGES[damage](file.data))
    state = tuple(broken if one is file else one for one in solved.state)
    result = _judge(runner, solved.bundle, state)
    assert result.outcome is Outcome.FAIL, f"{file.path}, {damage}: {result}"


@pytest.mark.bubblewrap
def test_each_kind_of_damage_is_noticed(solved: Solved, runner: Runner) -> None:
    assert solved.state
    for number, damage in enumerate(DAMAGES):
        _assert_noticed(runner, solved, solved.state[number % len(solved.state)], damage)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_any_output_is_noticed(solved: Solved, runner: Runner, damage: str) -> None:
    for file in solved.state:
        _assert_noticed(runner, solved, file, damage)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_missing_output_is_noticed(solved: Solved, runner: Runner) -> None:
    for file in solved.state:
        state = tuple(one for one in solved.state if one is not file)
        result = _judge(runner, solved.bundle, state)
        assert result.outcome is Outcome.FAIL, f"without {file.path}: {result}"


def _in_another_style(file: SandboxFile) -> SandboxFile:
    """The same content as another hand would write it, where the instruction leaves it open."""
    text = file.data.decode()
    if file.path.endswith(".json"):
        text = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    elif file.path.endswith(".csv"):
        rows = csv.reader(io.StringIO(text))
        other = io.StringIO()
        csv.writer(other, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
        text = other.getvalue()
    else:
        text = text.rstrip("\n")
    return replace(file, data=text.encode())


@pytest.mark.bubblewrap
def test_other_spellings_of_right_work_pass(solved: Solved, runner: Runner) -> None:
    state = tuple(_in_another_style(file) for file in solved.state)
    assert state != solved.state
    result = _judge(runner, solved.bundle, state)
    assert result.outcome is Outcome.PASS, result


@pytest.mark.bubblewrap
def test_an_output_that_is_only_a_link_to_the_inputs_is_refused(
    solved: Solved, runner: Runner
) -> None:
    state = tuple(SandboxFile(f.path, mode=0o777, link="/app/data") for f in solved.state)
    assert _judge(runner, solved.bundle, state).outcome is Outcome.FAIL


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"${files[@]}"; fi', "${files[@]}; fi"),
        ("failed=1", "failed=0"),
        ("]}-$2}", "]}-$2+1}"),
    ],
    ids=["blanks", "failures", "retention"],
)
def test_a_backup_script_with_one_bug_left_fails(runner: Runner, right: str, wrong: str) -> None:
    bundle = _read("broken-backup-script")
    script = bundle.text("solution/backup.sh").replace(right, wrong)
    assert script != bundle.text("solution/backup.sh")
    drill = bundle.text("solution/solve.sh").replace('[ "$status" -eq 1 ]', "true")
    files = [
        SandboxFile("solve.sh", drill.encode(), 0o755),
        SandboxFile("backup.sh", script.encode()),
    ]
    result = runner.run(trial_spec(bundle, solution_solver(bundle, "half", files)))
    assert result.outcome is Outcome.FAIL, result
    assert 0 < len(result.failed_checks) < len(result.checks)


LEAVES_A_LOOP = """#!/bin/bash
set -eu
mkdir -p /app/out
cat > /app/out/backup.sh <<'END'
#!/bin/bash
setsid bash -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' > /dev/null 2>&1 &
END
chmod 755 /app/out/backup.sh
"""


@pytest.mark.bubblewrap
def test_a_script_that_keeps_writing_rewards_is_ended_before_the_reward(runner: Runner) -> None:
    bundle = _read("broken-backup-script")
    files = [SandboxFile("solve.sh", LEAVES_A_LOOP.encode(), 0o755)]
    result = runner.run(trial_spec(bundle, solution_solver(bundle, "cheat", files)))
    assert result.outcome is Outcome.FAIL, result


@pytest.mark.parametrize("slug", SLUGS)
def test_a_seed_says_what_the_operators_need(slug: str) -> None:
    bundle = _read(slug)
    ratchet = bundle.config["metadata"]["ratchet"]
    sequence = [Pair(**pair) for pair in ratchet["sequence"]]
    assert ratchet["host_root"] is True
    assert 2 <= len(sequence) <= 5
    assert bundle.config["task"]["name"] == f"ratchet/{slug}"
    assert bundle.config["artifacts"] == ["/app/out"]
    assert 120 <= len(bundle.instruction.split()) <= 350
    assert sum(len(file.data) for file in bundle.files) <= SIZE_CAP_BYTES


@pytest.mark.parametrize("slug", SLUGS)
def test_a_seed_has_two_text_inputs_of_some_size(slug: str) -> None:
    solution = _read(slug).folder("solution")
    named = b"".join(file.data for file in solution)
    texts = [
        file
        for file in _read(slug).folder("environment")
        if len(file.data) >= 1000 and b"\0" not in file.data and Path(file.path).suffix != ".md"
    ]
    assert len(texts) >= 2
    assert any(Path(file.path).name.encode() in named for file in texts)


def test_all_seeds_share_one_runner_of_checks() -> None:
    runners = {path: path.read_bytes() for path in SEEDS.glob("*/tests/run_checks.py")}
    assert len(runners) >= len(SLUGS)
    assert len(set(runners.values())) == 1, "the copies of run_checks.py differ"
