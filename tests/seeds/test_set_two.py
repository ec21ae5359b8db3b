"""Five more bundled seeds: right work passes however it is spelled, near misses do not."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
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
    "archive-carving",
    "build-dependency-repair",
    "dns-zone-consolidation",
    "metrics-gap-analysis",
    "permission-audit",
)
SIZE_CAP_BYTES = 300_000

_BY_CONTENT = """\
    FILENAME == ARGV[1] { if (!(($2, $3) in first)) first[$2, $3] = $1; next }
    FILENAME == ARGV[2] { last[$2] = $3; next }
    FNR == 1 { next }
    ($3, $4) in first { print first[$3, $4] "\\t" $2;"""

State = tuple[SandboxFile, ...]


@dataclass(frozen=True)
class NearMiss:
    """A mistake that an able person makes: one place of the solution, and the check it fails."""

    slug: str
    right: str
    wrong: str
    check: str


NEAR_MISSES = {
    "old targets are trusted": NearMiss(
        "build-dependency-repair", "rm -rf build\n", "true\n", "checksums"
    ),
    "the address of an old revision": NearMiss(
        "build-dependency-repair",
        '$1 ~ /^0x/ && $3 == "registers" { print $1 }',
        "/rev C/ { print $5 }",
        "clean_build_is_right",
    ),
    "declared inputs are taken for needed ones": NearMiss(
        "build-dependency-repair",
        "sorted(opened[target])",
        "sorted(opened[target] | set(listed))",
        "rules_list_what_steps_open",
    ),
    "files are recovered by name": NearMiss(
        "archive-carving",
        _BY_CONTENT,
        _BY_CONTENT.replace("($2, $3)", "$4")
        .replace("$2, $3", "$4")
        .replace("($3, $4)", "$2")
        .replace("$3, $4", "$2"),
        "every_intact_file_is_there",
    ),
    "headers inside of files are taken for members": NearMiss(
        "archive-carving",
        "status, content, position = read_member(head[0])",
        "status, content, position = *read_member(head[0])[:2], head[0]",
        "strays",
    ),
    "checksums of members are not looked at": NearMiss(
        "archive-carving",
        "sound = crc == zlib.crc32(content) and size == len(content) % 2**32",
        "sound = True",
        "losses",
    ),
    "set-id bits are lost by chown": NearMiss(
        "permission-audit",
        "mode &= ~0o4000 if not mode & 0o010 else ~0o6000",
        "pass",
        "tree_is_as_required_afterwards",
    ),
    "the first matching line of the policy applies": NearMiss(
        "permission-audit", "        ][-1]\n", "        ][0]\n", "rules"
    ),
    "expired exceptions still count": NearMiss(
        "permission-audit", "$3 >= today {", "NF {", "findings"
    ),
    "clocks are taken to be right": NearMiss(
        "metrics-gap-analysis", "seconds(time) - offset", "seconds(time)", "gaps"
    ),
    "samples of several hosts at one time are one": NearMiss(
        "metrics-gap-analysis", "| sort -n >", "| sort -n -u >", "slot_counts"
    ),
    "unknown slots count as down": NearMiss(
        "metrics-gap-analysis",
        'values.count("up") + values.count("unknown") < quorum',
        'values.count("up") < quorum',
        "availability",
    ),
    "only the first dangling aliases are found": NearMiss(
        "dns-zone-consolidation",
        'records = drop("dangling-cname", dangling)\n',
        'records = drop("dangling-cname", dangling)\n    break\n',
        "errors",
    ),
    "semicolons in strings begin a comment": NearMiss(
        "dns-zone-consolidation", 'r\'"(?:[^"\\\\]|\\\\.)*"|[()]', "r'[()]", "records"
    ),
    "an origin of an included file stays": NearMiss(
        "dns-zone-consolidation",
        "read(words[1], absolute(words[2], origin), default)",
        "origin = absolute(words[2], origin); read(words[1], origin, default)",
        "records",
    ),
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
    assert solved.result.solver_output == b""
    assert 4 <= len(solved.result.checks) <= 8


@pytest.mark.bubblewrap
def test_the_reference_solution_leaves_the_same_bytes_again(solved: Solved, runner: Runner) -> None:
    again = runner.run(trial_spec(solved.bundle, oracle(solved.bundle), keep_state=True))
    assert again.state == solved.state


@pytest.mark.bubblewrap
def test_doing_nothing_fails_every_check(solved: Solved, runner: Runner) -> None:
    result = runner.run(trial_spec(solved.bundle, nop(solved.bundle)))
    assert result.outcome is Outcome.FAIL, result
    assert len(result.failed_checks) == len(result.checks)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_fails_the_check_that_is_meant_for_it(runner: Runner, name: str) -> None:
    miss = NEAR_MISSES[name]
    bundle = _read(miss.slug)
    script = bundle.text("solution/solve.sh")
    assert script.count(miss.right) == 1
    files = [SandboxFile("solve.sh", script.replace(miss.right, miss.wrong).encode(), 0o755)]
    result = runner.run(trial_spec(bundle, solution_solver(bundle, "near miss", files)))
    assert result.outcome is Outcome.FAIL, result
    assert miss.check in result.failed_checks, result.checks


def _damages(data: bytes) -> Iterator[tuple[str, bytes]]:
    """What is left of a file after each kind of damage that changes it."""
    lines = data.splitlines(keepends=True)
    middle = len(lines) // 2
    yield "emptied", b""
    yield "cut in half", data[: len(data) // 2]
    yield "a line dropped", b"".join(lines[:middle] + lines[middle + 1 :])
    yield "a line doubled", b"".join(lines[:middle] + lines[middle - 1 :])
    for number in list(re.finditer(rb"\d+", data))[-1:]:
        other = str(int(number[0]) + 1).encode()
        yield "a number changed", data[: number.start()] + other + data[number.end() :]


def _reports_first(state: State) -> State:
    """All reports, and of the recovered files a few."""
    many = [file for file in state if file.path.startswith("/app/out/files/")]
    return tuple(file for file in state if file not in many[3:])


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_damage_to_any_output_is_noticed(solved: Solved, runner: Runner) -> None:
    for file in _reports_first(solved.state):
        rest = tuple(one for one in solved.state if one is not file)
        assert _judge(runner, solved.bundle, rest).outcome is Outcome.FAIL, f"no {file.path}"
        for damage, data in _damages(file.data):
            if data != file.data:
                result = _judge(runner, solved.bundle, (*rest, replace(file, data=data)))
                assert result.outcome is Outcome.FAIL, f"{file.path}, {damage}"


@pytest.mark.bubblewrap
def test_two_neighbouring_lines_swapped_are_noticed(solved: Solved, runner: Runner) -> None:
    file = next(one for one in solved.state if one.path.endswith(".csv"))
    lines = file.data.splitlines(keepends=True)
    lines[1:3] = reversed(lines[1:3])
    state = tuple(replace(f, data=b"".join(lines)) if f is file else f for f in solved.state)
    assert _judge(runner, solved.bundle, state).outcome is Outcome.FAIL


def _in_another_style(file: SandboxFile) -> SandboxFile:
    """The same content as another hand would write it, where the instruction leaves it open."""
    if file.path.startswith("/app/out/files/"):
        return file
    text = file.data.decode()
    if file.path.endswith(".csv"):
        other = io.StringIO()
        rows = csv.reader(io.StringIO(text))
        csv.writer(other, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
        text = other.getvalue()
    elif file.path.endswith(".zone"):
        text = text.replace(" IN ", "\tIN\t")
    elif file.path.endswith("Buildfile"):
        text = text.replace("src/types.h src/uart.c", "src/uart.c src/types.h")
        text = "# repaired\n" + text.replace("0x4800", "0X4800")
    elif file.path.endswith(".sh"):
        text = re.sub(r"'([\w/. >-]+)'", r'"\1"', text).replace("chmod ", "chmod -- ")
        text = re.sub(r"chmod -- (\d+)", r"chmod \1 --", text)
    return replace(file, data=text.rstrip("\n").encode())


@pytest.mark.bubblewrap
def test_other_spellings_of_right_work_pass(solved: Solved, runner: Runner) -> None:
    state = tuple(_in_another_style(file) for file in solved.state)
    assert state != solved.state
    result = _judge(runner, solved.bundle, state)
    assert result.outcome is Outcome.PASS, result


@pytest.mark.bubblewrap
def test_a_remediation_that_does_more_than_it_may_is_refused(runner: Runner) -> None:
    bundle = _read("permission-audit")
    result = runner.run(trial_spec(bundle, oracle(bundle), keep_state=True))
    (script,) = (f for f in result.state or () if f.path.endswith("remediate.sh"))
    rest = tuple(f for f in result.state or () if f is not script)
    for more in (b"chmod -R 0700 /srv/billing", b"chmod 0600 /srv/billing/www/upload; id", b"id"):
        state = (*rest, replace(script, data=script.data + more + b"\n"))
        failed = _judge(runner, bundle, state).failed_checks
        assert "script_form_and_order" in failed, more


@pytest.mark.parametrize("slug", SLUGS)
def test_a_seed_says_what_the_operators_need(slug: str) -> None:
    bundle = _read(slug)
    ratchet = bundle.config["metadata"]["ratchet"]
    assert ratchet["host_root"] is True
    assert 2 <= len([Pair(**pair) for pair in ratchet["sequence"]]) <= 5
    assert bundle.config["task"]["name"] == f"ratchet/{slug}"
    assert bundle.config["artifacts"] == ["/app/out"]
    assert 120 <= len(bundle.instruction.split()) <= 350
    assert sum(len(file.data) for file in bundle.files) <= SIZE_CAP_BYTES


@pytest.mark.parametrize("slug", SLUGS)
def test_no_expected_answer_lies_in_the_environment(slug: str) -> None:
    bundle = _read(slug)
    environment = b"\n".join(file.data for file in bundle.folder("environment"))
    expected = (
        bundle.by_path.get("tests/expected.json") or bundle.by_path["tests/project/Buildfile"]
    )
    answers = [line for line in expected.data.splitlines() if len(line) > 60]
    shared = [line for line in answers if line.strip().strip(b'",') in environment]
    assert len(shared) <= len(answers) / 2, shared


def test_the_build_seed_judges_with_the_driver_and_the_sources_that_it_hands_out() -> None:
    bundle = _read("build-dependency-repair")
    handed_out = {file.path: file for file in bundle.folder("environment/project")}
    judged = [f for f in bundle.folder("tests/project") if f.path != "Buildfile"]
    assert {f.path.split("/")[0] for f in judged} == {"src", "tools"}
    assert all(handed_out[file.path] == file for file in judged)
