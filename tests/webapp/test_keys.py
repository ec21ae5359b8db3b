"""Keys of models are in the environment of those processes alone that ask models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tests.house.processes import naming
from webapp.embedded.child import calls_models
from webapp.embedded.supervisor import worker_parts

KEY = "sk-canary-3b1f77aa"


def test_only_the_workers_see_keys() -> None:
    parts = worker_parts(2, {"OPENAI_API_KEY"})
    hidden = {part.name: part.hidden for part in parts}
    assert hidden == {
        "worker1": frozenset(),
        "worker2": frozenset(),
        "tender": {"OPENAI_API_KEY"},
        "beat": {"OPENAI_API_KEY"},
    }
    assert [part.name for part in parts if calls_models(part.arguments)] == ["worker1", "worker2"]


LOOK = """
import sys
import django
django.setup()
from django.db import connection
connection.ensure_connection()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_the_keeper_of_the_database_holds_no_key(
    command_environment: dict[str, str], home: Path
) -> None:
    environment = command_environment | {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "RATCHET_MODELS": "default=http://127.0.0.1:9/v1 m key_env=MY_HOUSE_KEY",
        "MY_HOUSE_KEY": KEY,
        "OPENAI_API_KEY": KEY,
    }
    with subprocess.Popen(
        [sys.executable, "-c", LOOK],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        ours = naming(f"RATCHET_HOME={home}\0")
        assert len(ours) > 1, "the keeper runs"
        assert ours.keys() & naming(KEY).keys() == {process.pid}
        process.communicate("\n", timeout=60)
