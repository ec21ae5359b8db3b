"""What depends on where and when it runs is found and named; what looks like it is let be."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from evolution import execution
from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus
from evolution.gates import hermetic
from evolution.gates.case import Case
from evolution.gates.clock import MARK
from evolution.gates.desk import Desk
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import (
    Image,
    ImageSpec,
    NetworkPolicy,
    Outcome,
    SandboxFile,
    SolverEnd,
    TrialResult,
    TrialSpec,
)
from tests.evolution.real_sandbox import CONFIG, DOCKERFILE, SOLVE, edited, orders, subject_of

pytestmark = pytest.mark.bubblewrap
DAY = 86400
TIMES = "other times of files"


def judged(bundle: Bundle, runner: TrialRunner) -> GateResult:
    with ThreadPoolExecutor(2) as pool:
        case = Case(subject_of(bundle), CONFIG)
        desk = Desk(runner, MemoryLog(), pool)
        return desk.settle({hermetic.GATE: hermetic.check(case)})[hermetic.GATE]


def noting(command: str, expected: str, *more: SandboxFile) -> Bundle:
    """The small environment, its solution leaving what a command says, its tests expecting it."""
    solve = f"{SOLVE}{command} > /app/out/note.txt\n"
    note = f'assert open("/app/out/note.txt").read().strip() == {expected!r}\n    '
    return orders(
        SandboxFile("solution/solve.sh", solve.encode(), 0o755),
        edited(orders(), "tests/checks.py", ("assert report()", f"{note}assert report()")),
        *more,
    )


def asserting(line: str) -> Bundle:
    """The small environment whose tests also insist on something."""
    return orders(
        edited(orders(), "tests/checks.py", ("assert report()", f"{line}\n    assert report()"))
    )


@dataclass
class Slow:
    """Runs out of time wherever the number of CPUs is another one, or everywhere."""

    is_everywhere: bool = False

    def prepare(self, spec: ImageSpec) -> Image:
        """Every image builds."""
        return Image(spec.digest, "slow", "slow", "/app")

    def run(self, spec: TrialSpec) -> TrialResult:
        """One trial, which takes no time here."""
        is_late = spec.limits.cpus != 1 or self.is_everywhere
        is_cut = is_late and spec.solver.command is not None  # nobody works where work is judged
        return TrialResult(
            Outcome.FAIL if is_late else Outcome.PASS,
            solver_end=SolverEnd.TIMEOUT if is_cut else SolverEnd.DONE,
            verifier_output=MARK.encode(),
        )


def test_running_out_of_time_is_named_as_such_where_it_ends_without_the_change() -> None:
    answer = judged(orders(), Slow())
    assert answer.status is GateStatus.FAILED
    assert answer.reason == "breaks with another number of CPUs (does not end within 20 s)"


def test_running_out_of_time_everywhere_says_nothing() -> None:
    answer = judged(orders(), Slow(is_everywhere=True))
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "does not end within 20 s with another time zone" in answer.reason
    assert "nor with nothing changed; does not end within 20 s, 400 days later" in answer.reason


def test_a_sound_environment_is_the_same_everywhere_and_always(runner: TrialRunner) -> None:
    answer = judged(orders(), runner)
    assert answer.status is GateStatus.PASSED, answer.reason
    assert dict(answer.figures)["changes"] == 8


@pytest.mark.parametrize(
    ("command", "expected", "change"),
    [
        ("date -d @0 +%H", "00", "another time zone"),
        ("word=Zürich; echo ${#word}", "7", "another locale"),
        ("echo $HOME", "/root", "another home"),
        ("nproc", "1", "another number of CPUs"),
        ("hostname", "sandbox", "another host name"),
        ("uname -n", "sandbox", "another host name"),
        ("umask", "0022", "another umask"),
        ("stat -c %a /app/out/report.json", "644", "another umask"),
        ("id -u", "0", "another user for the solution"),
        ("[ $EUID -eq 0 ]; whoami", "root", "another user for the solution"),
        ("date -u -r data/orders.csv +%F", "2024-01-01", f"{TIMES} (the last one newest)"),
    ],
)
def test_what_depends_on_its_surroundings_is_named(
    runner: TrialRunner, command: str, expected: str, change: str
) -> None:
    answer = judged(noting(command, expected), runner)
    assert answer.status is GateStatus.FAILED
    assert answer.reason == f"breaks with {change}"


def test_what_the_image_sets_itself_is_not_changed(runner: TrialRunner) -> None:
    dockerfile = orders().text("environment/Dockerfile") + "ENV TZ=UTC\n"
    file = SandboxFile("environment/Dockerfile", dockerfile.encode())
    answer = judged(noting("date -d @0 +%H", "00", file), runner)
    assert answer.status is GateStatus.PASSED, answer.reason


@pytest.mark.parametrize(
    "told", ["The report is readable for all.", "Its mode is 644.", "Run `chmod` as you like."]
)
def test_a_umask_is_reported_only_where_modes_are_spoken_of(runner: TrialRunner, told: str) -> None:
    text = f"{orders().instruction}\n{told}\n".encode()
    answer = judged(noting("umask", "0022", SandboxFile("instruction.md", text)), runner)
    assert answer.status is GateStatus.PASSED
    assert answer.reason.endswith("fails with another umask")


FOLDER = "mkdir -p conf && cd conf && touch a b && cd .. && chmod 755 conf"


def test_the_order_in_which_a_folder_lists_its_files_is_changed(runner: TrialRunner) -> None:
    docker = SandboxFile("environment/Dockerfile", f"{DOCKERFILE}RUN {FOLDER}\n".encode())
    usual, turned = "ls -U conf | head -n 1", "b"
    answer = judged(noting(usual, "a", docker), runner)
    other = judged(noting(usual, turned, docker), runner)
    assert {answer.status, other.status} >= {GateStatus.FAILED}
    sound = judged(noting("ls conf | head -n 1", "a", docker), runner)
    assert sound.status is GateStatus.PASSED, sound.reason


def test_times_that_the_image_sets_stay_as_they_are(runner: TrialRunner) -> None:
    run = "RUN touch -d 2023-05-06 data/orders.csv\n"
    docker = SandboxFile("environment/Dockerfile", f"{DOCKERFILE}{run}".encode())
    answer = judged(noting("date -u -r data/orders.csv +%F", "2023-05-06", docker), runner)
    assert answer.status is GateStatus.PASSED, answer.reason


@pytest.mark.parametrize(
    "line",
    [
        f"import time; assert time.time() < {int(time.time()) + 200 * DAY}, 'expired'",
        "import datetime as d; "
        f"assert d.date.today() < d.date.fromtimestamp({int(time.time()) + 200 * DAY}), 'expired'",
        "from datetime import datetime as d, timezone as z; "
        f"assert d.now(z.utc).timestamp() < {int(time.time()) + 200 * DAY}, 'expired'",
    ],
    ids=["time", "date", "datetime"],
)
def test_a_time_bomb_is_found(runner: TrialRunner, line: str) -> None:
    answer = judged(asserting(line), runner)
    assert answer.status is GateStatus.FAILED
    assert answer.reason == "breaks with a clock 400 days later"


def test_a_time_bomb_in_a_script_is_found(runner: TrialRunner) -> None:
    limit = int(time.time()) + 200 * DAY
    test = f"#!/bin/bash\nif [ $(date +%s) -gt {limit} ]; then echo 0 > /logs/verifier/reward.txt\n"
    test += "else python3 -I -B /tests/run_checks.py; fi\n"
    answer = judged(orders(SandboxFile("tests/test.sh", test.encode(), 0o755)), runner)
    assert answer.reason == "breaks with a clock 400 days later"


@pytest.mark.parametrize(
    "line",
    [
        "import datetime as d; assert isinstance(d.datetime.now(), d.date)",
        "import datetime as d; assert d.date.today() - d.date(2020, 1, 1) > d.timedelta(9)",
        "import time; assert time.strftime('%Y') == str(time.localtime().tm_year)",
        "import subprocess as s; assert s.run(['true']).returncode == 0",
        "import time; a = time.monotonic(); assert time.monotonic() - a < 5",
        "import json, datetime as d; assert json.dumps(d.date(2026, 1, 2).isoformat())",
        "import pickle, datetime as d; assert pickle.loads(pickle.dumps(d.datetime(2026, 1, 2)))",
        "import datetime as d; assert d.datetime.strptime('2026', '%Y') == d.datetime(2026, 1, 1)",
    ],
)
def test_tests_that_use_time_soundly_are_let_be(runner: TrialRunner, line: str) -> None:
    answer = judged(asserting(line), runner)
    assert answer.status is GateStatus.PASSED, (answer.reason, answer.evidence[-1].last_lines)


def test_a_result_that_names_its_day_is_judged_on_that_day(runner: TrialRunner) -> None:
    command = "python3 -c 'import datetime; print(datetime.date.today())'"
    solve = f"{SOLVE}{command} > /app/out/day.txt\n"
    line = (
        'import datetime as d; assert open("/app/out/day.txt").read()[:10] == str(d.date.today())'
    )
    bundle = asserting(line).with_files([SandboxFile("solution/solve.sh", solve.encode(), 0o755)])
    answer = judged(bundle, runner)
    assert answer.status is GateStatus.PASSED, answer.reason


def test_what_compares_with_times_of_files_is_inconclusive(runner: TrialRunner) -> None:
    age = "time.time() - os.stat('/tmp/a').st_mtime"
    line = f"import os, time; open('/tmp/a', 'w')\n    assert {age} < 9"
    answer = judged(asserting(line), runner)
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "looks at more than now" in answer.reason


def test_broken_machinery_is_inconclusive(runner: TrialRunner) -> None:
    class Broken:
        prepare = staticmethod(runner.prepare)

        def run(self, spec: object) -> TrialResult:
            return TrialResult(Outcome.INFRA_ERROR, error="the engine is gone")

    answer = judged(orders(), Broken())
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "the engine is gone" in answer.reason


def test_an_allowed_network_is_taken_away(runner: TrialRunner) -> None:
    text = orders().text("task.toml").replace('"no-network"', '"public"')
    bundle = orders(SandboxFile("task.toml", text.encode()))
    spec = execution.trial_spec(bundle, execution.oracle(bundle))
    changes = hermetic.changes_of(bundle, spec)
    assert changes["no network"](spec) == replace(spec, network=NetworkPolicy())
    assert "no network" not in hermetic.changes_of(
        orders(), execution.trial_spec(orders(), execution.oracle(orders()))
    )


@pytest.mark.parametrize(
    ("told", "command", "why"),
    [
        ("It belongs to root.", "id -u", "the instruction speaks of root"),
        ("", "chown 0 /app/out; id -u", "they call what insists on root"),
    ],
)
def test_what_could_not_be_tried_is_told_and_holds_nothing_against_a_bundle(
    runner: TrialRunner, told: str, command: str, why: str
) -> None:
    text = f"{orders().instruction}\n{told}\n".encode()
    answer = judged(noting(command, "0", SandboxFile("instruction.md", text)), runner)
    assert answer.status is GateStatus.PASSED, answer.reason
    assert "not tried: another user for the solution" in answer.reason
    assert dict(answer.figures)["not_tried"] == 1
    (item,) = (one for one in answer.evidence if one.label.startswith("not tried: "))
    assert why in item.result


def test_an_image_without_another_user_is_told(runner: TrialRunner) -> None:
    command = f"{SOLVE}id -u > /app/out/note.txt\n"
    run = "RUN printf '#!/bin/sh\\nexit 1\\n' > /usr/local/bin/setpriv"
    docker = f"{DOCKERFILE}{run} && chmod 755 /usr/local/bin/setpriv\n"
    bundle = orders(
        SandboxFile("solution/solve.sh", command.encode(), 0o755),
        SandboxFile("environment/Dockerfile", docker.encode()),
    )
    answer = judged(bundle, runner)
    assert answer.status is GateStatus.PASSED, answer.reason
    assert "not tried: another user for the solution" in answer.reason


def test_tests_that_want_to_be_root_are_found(runner: TrialRunner) -> None:
    answer = judged(asserting("import os; assert os.getuid() == 0"), runner)
    assert answer.reason == "breaks with another user for the tests"


def test_work_that_has_to_be_fresh_is_found(runner: TrialRunner) -> None:
    age = "time.time() - os.stat('/app/out/report.json').st_mtime"
    shared = orders().text("task.toml").replace('environment_mode = "separate"', "")
    bundle = asserting(f"import os, time; assert {age} < 60")
    answer = judged(bundle.with_files([SandboxFile("task.toml", shared.encode())]), runner)
    assert answer.status is GateStatus.FAILED
    assert "work that is judged two hours later" in answer.reason


def test_who_asks_for_the_user_and_works_as_another_one_is_let_be(runner: TrialRunner) -> None:
    answer = judged(noting("id -u > /dev/null; echo 1", "1"), runner)
    assert answer.status is GateStatus.PASSED, answer.reason
    assert any(item.label.startswith("another user") for item in answer.evidence)
    assert dict(answer.figures)["not_tried"] == 0
