"""`bench/trials.py` as a command, on small bundles that need no packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from bench.cases import BenchError, Case
from bench.harbor import Harbor, find_harbor
from evolution.writing import write_bundle
from sandbox.contracts import SandboxFile
from tests.conftest import ROOT
from tests.evolution.sample_bundles import TASK_TOML, sample_bundle

_SLOW = [pytest.mark.docker, pytest.mark.slow]
KEYS = ["backend", "agent", "concurrency", "trials_per_minute", "seconds_per_trial"]
KEYS += ["floor_ratio", "harbor_ratio"]
_JUDGE = b"""#!/bin/bash
echo "$(($(cat /app/out/n 2>/dev/null || echo 0) == 2))" >/logs/verifier/reward.txt
"""


def _seeds(folder: Path, judge: bytes = _JUDGE) -> Path:
    for name in ("first", "second"):
        bundle = sample_bundle(SandboxFile("tests/test.sh", judge, 0o755))
        write_bundle(bundle, folder / "seeds" / name)
    return folder / "seeds"


@pytest.fixture
def home() -> Iterator[Path]:
    """Not below pytest's own folder, which is closed: the floor of root works as another user."""
    with tempfile.TemporaryDirectory(prefix="ratchet-bench-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _run(
    home: Path, seeds: Path, *arguments: str, extra: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "HARBOR"}
    words = ["bench/trials.py", "--seeds", str(seeds), "--home", str(home), *arguments]
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**environment, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **extra},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("bubblewrap-image", marks=[*_SLOW, pytest.mark.bubblewrap]),
        pytest.param("docker", marks=_SLOW),
    ],
)
def test_the_answer_has_a_row_per_cell(way: str, home: Path, tmp_path: Path) -> None:
    arguments = ("--backends", way, "--concurrency", "1,2", "--trials", "3", "--json")
    done = _run(home, _seeds(tmp_path), *arguments)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert list(answer) == ["rows"]
    assert [list(row) for row in answer["rows"]] == [KEYS] * 4
    cells = [(row["backend"], row["agent"], row["concurrency"]) for row in answer["rows"]]
    assert cells == [(way, agent, n) for agent in ("oracle", "nop") for n in (1, 2)]
    for row in answer["rows"]:
        assert row["trials_per_minute"] > 0
        assert 0 < row["seconds_per_trial"] < 60
        assert row["floor_ratio"] > 0
        assert row["harbor_ratio"] is None
    assert "x floor" in done.stderr
    assert "solver" in done.stderr


@pytest.mark.bubblewrap
def test_a_wrong_reward_is_an_error_and_no_figure(home: Path, tmp_path: Path) -> None:
    judge = b"#!/bin/bash\necho 1 >/logs/verifier/reward.txt\n"
    done = _run(home, _seeds(tmp_path, judge), "--backends", "bubblewrap", "--trials", "3")
    assert done.returncode == 1
    assert "by nop: reward 1" in done.stderr
    assert "trials/min" not in done.stdout


@pytest.mark.bubblewrap
def test_the_drivers_memory_is_watched(home: Path, tmp_path: Path) -> None:
    arguments = ("--backends", "bubblewrap", "--trials", "20", "--watch-memory", "--json")
    done = _run(home, _seeds(tmp_path), *arguments)
    assert done.returncode == 0, done.stderr
    (verdict,) = json.loads(done.stdout)["memory"]
    assert verdict["is_flat"]
    assert [n for n, _kib in verdict["samples"]] == list(range(0, 21, 2))
    assert "flat:" in done.stderr


def test_a_folder_without_bundles_is_one_line(home: Path, tmp_path: Path) -> None:
    done = _run(home, tmp_path)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (1, 1)


@pytest.mark.bubblewrap
def test_what_cannot_run_the_bundles_is_left_out_unless_it_was_named(
    home: Path, tmp_path: Path
) -> None:
    toml = TASK_TOML.replace("host_root = true", "host_root = false")
    write_bundle(sample_bundle(task_toml=toml), tmp_path / "seeds" / "one")
    done = _run(home, tmp_path / "seeds", "--backends", "bubblewrap")
    assert done.returncode == 1
    assert "use Docker" in done.stderr
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/no.sock"}
    done = _run(home, tmp_path / "seeds", extra=nowhere)
    assert done.returncode == 1
    assert "docker is left out: " in done.stdout
    assert "bubblewrap is left out: " in done.stdout
    assert "no back-end can run these bundles here" in done.stderr


# --- Harbor -----------------------------------------------------------------------------------

_STAND_IN = """#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" = -o ] && jobs=$2; [ "$1" = -a ] && agent=$2; shift; done
[ "$agent" = oracle ] && reward=1.0 || reward=0.0
n=0
for task in tasks/*; do
    grep -q 'network_mode = "public"' "$task/task.toml" || exit 9
    mkdir -p "$jobs/job/$n"
    printf '{"task_name": "%s", "exception_info": null, "verifier_result": {"rewards":
        {"reward": %s}}, "started_at": "2026-01-01T00:00:0%sZ",
        "finished_at": "2026-01-01T00:00:1%sZ"}' "$task" $reward $n $n >"$jobs/job/$n/result.json"
    n=$((n + 1))
done
"""


def _program(tmp_path: Path, text: str = _STAND_IN) -> Path:
    path = tmp_path / "harbor"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_what_harbor_leaves_is_read(tmp_path: Path) -> None:
    cases = [Case(name, sample_bundle()) for name in ("one", "two", "three")]
    harbor = Harbor(_program(tmp_path), cases)
    figures = harbor.run("oracle", 2)
    assert (figures.trials, figures.wall_seconds, figures.seconds_per_trial) == (3, 12.0, 10.0)
    assert figures.trials_per_minute == 15.0
    harbor.run("nop", 2)
    harbor.close()
    assert not harbor.folder.exists()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("reward=1.0", "reward=0.5", "reward 0.5"),
        ("n=$((n + 1))", "exit 0", "ran 1 trials of 2"),
        ("null", '{"exception_message": "no engine"}', "no engine"),
        ("n=0", "echo broken; exit 3", "broken"),
    ],
)
def test_a_harbor_that_fails_is_no_slow_one(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    cases = [Case(name, sample_bundle()) for name in ("one", "two")]
    assert old in _STAND_IN
    harbor = Harbor(_program(tmp_path, _STAND_IN.replace(old, new, 1)), cases)
    with pytest.raises(BenchError, match=reason):
        harbor.run("oracle", 2)
    harbor.close()


def test_harbor_is_named_or_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _program(tmp_path)
    monkeypatch.delenv("HARBOR", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert find_harbor(None) is None
    assert find_harbor(str(program)) == program
    monkeypatch.setenv("HARBOR", str(program))
    assert find_harbor(None) == program
    monkeypatch.setenv("HARBOR", "/nowhere/harbor")
    with pytest.raises(BenchError):
        find_harbor(None)
    monkeypatch.delenv("HARBOR")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_harbor(None) == program
