"""`bench/harbor_verdicts.py` as a command, with a stand-in for Harbor's program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cases import Case
from bench.harbor_verdicts import harbors_answer, sampled
from evolution.writing import write_bundle
from sandbox.contracts import SandboxFile
from tests.conftest import ROOT
from tests.evolution.sample_bundles import sample_bundle

_JUDGE = b"""#!/bin/bash
echo "$(($(cat /app/out/n 2>/dev/null || echo 0) == 2))" >/logs/verifier/reward.txt
"""
_HARBOR = """#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" = -o ] && jobs=$2; [ "$1" = -a ] && agent=$2; shift; done
for task in $PWD/tasks/*; do
    [ "$agent" = oracle ] && reward=1.0 || reward=0.0
    name=${task##*/}
    mkdir -p "$jobs/job/$name"
    printf '{"task_name": "x", "task_id": {"path": "%s"}, "exception_info": null,
        "verifier_result": {"rewards": {"reward": %s}}}' "$task" $reward \\
        >"$jobs/job/$name/result.json"
done
"""


def _compare(folder: Path, harbor: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    for name in ("first", "second", "third"):
        bundle = sample_bundle(SandboxFile("tests/test.sh", _JUDGE, 0o755))
        write_bundle(bundle, folder / "exported" / name)
    for name, text in (("harbor", harbor), ("docker", "#!/bin/bash\n")):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    words = [str(folder / "exported"), "--home", str(folder / "home"), *arguments]
    return subprocess.run(
        [sys.executable, "-m", "bench.harbor_verdicts", *words],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin", "HARBOR": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.bubblewrap
def test_the_same_answers_are_counted(tmp_path: Path) -> None:
    done = _compare(tmp_path, _HARBOR, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["trials"], answer["rows"]) == (6, [])
    assert (answer["differ"]["count"], answer["differ"]["of"]) == (0, 3)


@pytest.mark.bubblewrap
def test_an_answer_that_differs_is_named(tmp_path: Path) -> None:
    other = _HARBOR.replace("    name=", "    [[ $task == */second ]] && reward=1.0\n    name=", 1)
    assert other != _HARBOR
    done = _compare(tmp_path, other)
    assert done.returncode == 1
    assert "second       nop    fail  pass" in done.stdout
    assert "environments that differ: 1/3" in done.stdout


@pytest.mark.parametrize("option", ["--sample", "--concurrency"])
def test_nothing_is_compared_with_none_at_all(tmp_path: Path, option: str) -> None:
    done = _compare(tmp_path, _HARBOR, option, "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --sample and --concurrency are at least 1\n"


def test_a_trial_without_a_reward_is_no_fail() -> None:
    assert harbors_answer({"verifier_result": None}).startswith("no answer")
    broken = {"exception_info": {"exception_message": "no engine"}, "verifier_result": None}
    assert harbors_answer(broken) == "no answer: no engine"


def test_a_sample_is_spread_over_all() -> None:
    cases = [Case(str(number), sample_bundle()) for number in range(10)]
    assert [case.name for case in sampled(cases, 5)] == ["0", "2", "4", "6", "8"]
    assert sampled(cases, 10) == sampled(cases, 11) == cases
