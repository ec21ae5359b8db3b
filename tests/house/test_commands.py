"""`serve` and `doctor` as a person runs them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from tests.conftest import ROOT
from tests.house.processes import naming

pytestmark = pytest.mark.slow  # whole processes, each with a database of its own


def manage(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """What `doctor --json` found, by name."""
    rows = json.loads(done.stdout.splitlines()[-1])["findings"]
    return {row["name"]: row for row in rows}


@pytest.mark.workers
def test_serve_serves_and_leaves_nothing(command_environment: dict[str, str], home: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", "0", "--workers", "1"],
        cwd=ROOT,
        env=command_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    said = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
    assert said is not None
    with urllib.request.urlopen(f"{said[0]}healthz", timeout=10) as answer:
        assert answer.status == 200
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert not naming(str(home))


def test_serve_beyond_loopback_asks_for_a_key(command_environment: dict[str, str]) -> None:
    done = manage(command_environment, "serve", "--host", "0.0.0.0")
    assert done.returncode != 0
    assert "SECRET_KEY" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.bubblewrap
def test_doctor_finds_a_machine_that_can(command_environment: dict[str, str], home: Path) -> None:
    done = manage(command_environment, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["can_run"] is True
    levels = {finding["name"]: finding["level"] for finding in report["findings"]}
    for name in ("python", "disk", "broker", "bubblewrap"):
        assert levels[name] == "ok", report
    assert levels["database"] == "warn"  # the tables are still to be made
    assert not naming(str(home))


def test_doctor_names_what_is_away_and_the_remedy(command_environment: dict[str, str]) -> None:
    away = {
        **command_environment,
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
        "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
    }
    done = manage(away, "doctor", "--json")
    assert done.returncode != 0
    assert "database, broker" in done.stderr
    by_name = findings(done)
    assert "DATABASE_URL" in by_name["database"]["remedy"]
    assert "CELERY_BROKER_URL" in by_name["broker"]["remedy"]


def test_doctor_prints_one_line_for_each_thing(command_environment: dict[str, str]) -> None:
    done = manage(command_environment, "doctor")
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    assert all(re.match(r"(ok|warn|fail) +[a-z]+ +\S", line) for line in lines), lines


@pytest.mark.django_db(transaction=True)
def test_doctor_finds_a_database_that_holds_no_unicode(command_environment: dict[str, str]) -> None:
    name = connection.ops.quote_name("ascii")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    address = (
        {"RATCHET_HOME": str(settings.RATCHET_HOME), "EMBEDDED_POSTGRES_DATABASE": "ascii"}
        if settings.IS_DATABASE_EMBEDDED
        else {"DATABASE_URL": settings.DATABASE_URL.rpartition("/")[0] + "/ascii"}
    )
    try:
        found = findings(manage(command_environment | address, "doctor", "--json"))["database"]
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert found["level"] == "fail"
    assert "encoding SQL_ASCII" in found["text"]
    assert "UTF8" in found["remedy"]


@pytest.mark.bubblewrap
def test_doctor_says_which_sandbox_is_taken(command_environment: dict[str, str]) -> None:
    away = {**command_environment, "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    auto = findings(manage(away, "doctor", "--json"))
    assert auto["docker"]["level"] == "warn"
    assert "/usr: bubblewrap; those on their image: refused" in auto["sandbox"]["text"]
    assert "held by 0 sandboxes" in auto["places"]["text"]
    done = manage({**away, "RATCHET_SANDBOX": "docker"}, "doctor", "--json")
    assert "cannot run here: docker" in done.stderr
    assert "RATCHET_SANDBOX=docker" in findings(done)["sandbox"]["text"]


def test_doctor_commands_no_terminal(command_environment: dict[str, str], tmp_path: Path) -> None:
    coloured = {**command_environment, "RATCHET_HOME": str(tmp_path / "a\x1b[31mb")}
    done = manage(coloured, "doctor")
    assert "\x1b" not in done.stdout + done.stderr
    assert "a\\x1b[31mb" in done.stdout


def in_a_namespace(
    environment: dict[str, str], script: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a shell script as the root of a user and mount namespace of its own."""
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *arguments],
        cwd=ROOT,
        env={**environment, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.bubblewrap
def test_a_full_disk_is_one_line(command_environment: dict[str, str], home: Path) -> None:
    home.mkdir()
    script = 'mount -t tmpfs -o size=20m tmpfs "$1" && exec "$PYTHON" manage.py migrate'
    done = in_a_namespace(command_environment, script, str(home))
    assert done.returncode != 0
    assert re.fullmatch(r"ratchet: .*no space left on the disk.*free some\n", done.stderr)


@pytest.mark.bubblewrap
def test_refused_user_namespaces_are_one_line(command_environment: dict[str, str]) -> None:
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$PYTHON" manage.py migrate'
    done = in_a_namespace(command_environment, script)
    assert done.returncode != 0
    assert re.fullmatch(r"ratchet: .*refuses user namespaces.*DATABASE_URL.*\n", done.stderr)


@pytest.mark.parametrize("command", [["verify", "--all"], ["import_environments", "seeds"]])
def test_a_database_that_was_never_set_up_is_one_line(
    command_environment: dict[str, str], command: list[str]
) -> None:
    done = manage(command_environment, *command)
    assert done.returncode == 1
    assert "`manage.py migrate`" in done.stderr
    assert done.stderr.count("\n") == 1
