"""What lies in the image once it is built: found; what only looks like it: let be."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus
from evolution.gates import image_leak, leak
from evolution.gates.case import Case
from evolution.gates.desk import Desk
from evolution.gates.specs import oracle_asks
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from sandbox.contracts import Outcome, SandboxFile, TrialResult, TrialSpec
from tests.evolution.real_sandbox import CONFIG, REPORT, orders, subject_of

pytestmark = pytest.mark.bubblewrap


def judged(bundle: Bundle, runner: TrialRunner) -> GateResult:
    with ThreadPoolExecutor(2) as pool:
        case = Case(subject_of(bundle), CONFIG)
        desk = Desk(runner, MemoryLog(), pool)
        return desk.settle({image_leak.GATE: image_leak.check(case)})[image_leak.GATE]


def built(make: str, payload: bytes = b"") -> Bundle:
    """The small environment whose image is made by one more program."""
    dockerfile = orders().text("environment/Dockerfile") + "RUN python3 /app/data/make.py\n"
    return orders(
        SandboxFile("environment/Dockerfile", dockerfile.encode()),
        SandboxFile("environment/data/make.py", make.encode()),
        SandboxFile("environment/data/payload", payload),
    )


MIRRORED = REPORT.encode()[::-1]
READ = "data = open('/app/data/payload', 'rb').read()[::-1]\n"


@pytest.mark.parametrize(
    ("write", "place"),
    [
        ("open('/opt/helper.py', 'wb').write(data)\n", "/opt/helper.py"),
        (
            "import gzip\nopen('/var/old.gz', 'wb').write(gzip.compress(data))\n",
            "/var/old.gz",
        ),
        (
            "import base64\nopen('/root/.cache', 'wb').write(base64.b64encode(b'x' + data))\n",
            "/root/.cache",
        ),
    ],
    ids=["plain", "gzip", "base64"],
)
def test_a_solution_that_only_the_build_unfolds_is_found(
    runner: TrialRunner, write: str, place: str
) -> None:
    bundle = built(READ + write, MIRRORED)
    case = Case(subject_of(bundle), CONFIG)
    assert leak.check(case).status is GateStatus.PASSED, "the files alone do not show it"
    answer = judged(bundle, runner)
    assert answer.status is GateStatus.FAILED
    assert answer.reason == f"{place} holds lines of solution/report.py"


def test_a_result_that_lies_ready_made_is_found(runner: TrialRunner) -> None:
    with ThreadPoolExecutor(1) as pool:
        case = Case(subject_of(orders()), CONFIG)
        (ask,) = oracle_asks(case)
        oracle = pool.submit(runner.run, ask.spec).result()
    assert oracle.state is not None
    done = next(file.data for file in oracle.state if file.path.endswith("report.json"))
    for name, data in (("cache.bin", done), ("log.b64", base64.b64encode(done))):
        answer = judged(orders(SandboxFile(f"environment/data/{name}", data)), runner)
        assert answer.status is GateStatus.FAILED
        assert f"environment/data/{name}" in answer.reason
        assert "holds the result /app/out/report.json" in answer.reason


def test_a_sound_image_holds_nothing(runner: TrialRunner) -> None:
    answer = judged(orders(), runner)
    assert answer.status is GateStatus.PASSED, answer.reason


def test_a_result_that_could_not_be_looked_for_is_not_called_absent(runner: TrialRunner) -> None:
    class Untraced:
        prepare = staticmethod(runner.prepare)

        def run(self, spec: TrialSpec) -> TrialResult:
            return replace(runner.run(spec), trace=None)

    answer = judged(orders(), Untraced())
    assert answer.status is GateStatus.PASSED
    assert "the result was not looked for" in answer.reason
    assert "of the result" not in answer.reason


def test_a_solution_without_a_result_is_inconclusive(runner: TrialRunner) -> None:
    class Gone:
        prepare = staticmethod(runner.prepare)

        def run(self, spec: object) -> TrialResult:
            return TrialResult(Outcome.INFRA_ERROR, error="the engine is gone")

    answer = judged(orders(), Gone())
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "the engine is gone" in answer.reason


def test_what_the_build_makes_of_its_own_data_is_no_leak(runner: TrialRunner) -> None:
    make = "import shutil\nshutil.copy('/app/data/orders.csv', '/opt/orders-backup.csv')\n"
    assert judged(built(make), runner).status is GateStatus.PASSED


def test_one_line_that_is_the_same_by_chance_is_no_leak(runner: TrialRunner) -> None:
    line = max(REPORT.splitlines(), key=len)
    make = READ + "open('/opt/notes.txt', 'wb').write(data)\n"
    assert judged(built(make, line.encode()[::-1]), runner).status is GateStatus.PASSED


def test_a_search_without_an_end_is_inconclusive(runner: TrialRunner) -> None:
    class Cut:
        prepare = staticmethod(runner.prepare)

        def run(self, spec: object) -> TrialResult:
            return TrialResult(Outcome.FAIL, (("reward", 0.0),), solver_output=b"")

    answer = judged(orders(), Cut())
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "did not come to its end" in answer.reason
