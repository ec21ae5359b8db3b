"""The wiring makes what is needed, once, and leaves the rest alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

LOOK = """
import json, sys
import django
django.setup()
from pathlib import Path
from evolution import execution
from evolution.reading import find_bundles
from webapp import wiring
(found,) = find_bundles(Path("seeds/service-config-migration"))
spec = execution.trial_spec(found.bundle, execution.nop(found.bundle))
results = [wiring.runner("run 1", choice).run(spec) for choice in sys.argv[1].split(",")]
wiring.reap()
wiring.reap()
print(json.dumps({
    "backends": [result.backend for result in results],
    "errors": [result.error for result in results],
    "has_docker": "docker" in sys.modules,
}))
"""


def look(environment: dict[str, str], *choices: str, **extra: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, ",".join(choices)],
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "webapp.settings", **extra},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.bubblewrap
def test_nothing_of_docker_is_touched_for_what_bubblewrap_can_run(
    command_environment: dict[str, str],
) -> None:
    seen = look(command_environment, "auto", "bubblewrap", DOCKER_HOST="unix:///nowhere.sock")
    assert seen["backends"] == ["bubblewrap"] * 2
    assert seen["errors"] == ["", ""]
    assert seen["has_docker"] is False


@pytest.mark.bubblewrap
def test_an_engine_that_is_away_is_one_clear_line(command_environment: dict[str, str]) -> None:
    away = {"DOCKER_HOST": "unix:///nowhere.sock"}
    seen = look(command_environment, "docker", "bubblewrap-image", **away)
    errors = seen["errors"]
    assert isinstance(errors, list)
    assert "does not answer" in errors[0]
    assert "start one, or set DOCKER_HOST" in errors[1]
    assert not any("\n" in error for error in errors)
