"""The set-up script: what it says when it cannot, and that it costs nothing when all is there."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files of the set-up, in a path with a space."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    shutil.copytree(ROOT / ".make", folder / ".make")
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    return folder


def make(clone: Path, *arguments: str, path: str = "/usr/bin:/bin") -> tuple[int, list[str]]:
    environment = {"PATH": path, "HOME": str(clone), "LANG": "C.UTF-8"}
    done = subprocess.run(
        ["make", *arguments],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    return done.returncode, lines


def a_python(folder: Path, answer: int) -> Path:
    """A stand-in that fits, or does not, and otherwise does nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "python3.13"
    program.write_text(f'#!/bin/sh\n[ "$2" = -c ] && exit {answer}\necho "ran $*" >&2\n')
    program.chmod(0o755)
    return program


def test_an_unfit_python_is_refused_by_name(clone: Path) -> None:
    python = a_python(clone / "old", answer=1)
    status, lines = make(clone, "setup", f"PYTHON={python}")
    assert status != 0
    assert len(lines) == 1
    assert str(python) in lines[0]
    assert "3.12" in lines[0]


@pytest.mark.parametrize("place", [".pyenv/versions/3.13.0/bin", ".local/share/uv/python/cp/bin"])
def test_a_python_off_the_path_is_found(clone: Path, place: str) -> None:
    a_python(clone / place, answer=0)
    status, lines = make(clone, "setup", path="/usr/bin:/bin")
    assert status == 0
    assert any(".make/setup.py" in line for line in lines)


def test_a_python_beside_the_real_path_of_python3_is_found(clone: Path) -> None:
    """Version managers put a link or a shim on PATH, and the rest beside its target."""
    a_python(clone / "manager" / "versions" / "3.13.0" / "bin", answer=0)
    shim = clone / "manager" / "shims" / "python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 1\n")
    shim.chmod(0o755)
    (clone / "path").mkdir()
    (clone / "path" / "python3").symlink_to(shim)
    status, lines = make(clone, "setup", path=f"{clone}/path:/usr/bin:/bin")
    assert status == 0
    assert any(".make/setup.py" in line for line in lines)


def test_the_second_time_costs_nothing(clone: Path) -> None:
    a_python(clone / ".venv" / "bin", answer=1).rename(clone / ".venv" / "bin" / "python")
    shutil.copy(clone / "requirements.lock", clone / ".venv" / ".installed")
    started = time.monotonic()
    assert make(clone, "setup") == (0, [])
    assert time.monotonic() - started < 1.0


def test_a_verb_without_a_name_lists_the_verbs(clone: Path) -> None:
    done = subprocess.run(["make"], cwd=clone, capture_output=True, text=True, check=True)
    for verb in ("setup", "demo", "serve", "test", "up", "doctor"):
        assert f"make {verb}" in done.stdout
