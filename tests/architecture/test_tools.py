"""The tools that guard the house are clean: floors, style, types, migrations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from importlinter.cli import lint_imports

from tests.conftest import ROOT


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_floors_hold(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None)
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")])
def test_ruff_is_content(arguments: tuple[str, ...]) -> None:
    done = run_module("ruff", *arguments, ".")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_is_content() -> None:
    done = run_module("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_package_of_the_house_is_checked() -> None:
    packages = {path.parent.name for path in Path(ROOT).glob("*/__init__.py")}
    assert packages == {"webapp", "evolution", "sandbox", "bench", "tests"}
