"""The settings: safe by default, and strict beyond loopback."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

READ = """
import json, sys
from webapp import settings
names = sys.argv[1].split(",")
print(json.dumps({name: getattr(settings, name) for name in names}, default=str))
"""


def read(environment: dict[str, str], *names: str, **extra: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", READ, ",".join(names)],
        cwd=ROOT,
        env={**environment, **extra},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout)
    return values


def refusal(environment: dict[str, str], **extra: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**environment, **extra},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_nothing_needs_to_be_set(command_environment: dict[str, str], home: Path) -> None:
    values = read(command_environment, "DEBUG", "ALLOWED_HOSTS", "RATCHET_HOME", "HTTPS")
    hosts = ["localhost", "127.0.0.1", "[::1]"]
    assert values == {
        "DEBUG": False,
        "ALLOWED_HOSTS": hosts,
        "RATCHET_HOME": str(home),
        "HTTPS": False,
    }


def test_the_key_is_made_once_and_is_private(
    command_environment: dict[str, str], home: Path
) -> None:
    first = read(command_environment, "SECRET_KEY")["SECRET_KEY"]
    assert len(first) > 50
    assert read(command_environment, "SECRET_KEY")["SECRET_KEY"] == first
    assert stat.S_IMODE((home / "secret-key").stat().st_mode) == 0o600


def test_a_key_file_cut_short_is_filled(command_environment: dict[str, str], home: Path) -> None:
    home.mkdir()
    (home / "secret-key").touch(mode=0o600)
    assert len(read(command_environment, "SECRET_KEY")["SECRET_KEY"]) > 50


@pytest.mark.parametrize("value", ["dokcer", "Auto", "bubblewrap,docker"])
def test_a_sandbox_that_is_none_is_one_line(
    command_environment: dict[str, str], value: str
) -> None:
    said = refusal(command_environment, RATCHET_SANDBOX=value)
    assert "auto, bubblewrap, bubblewrap-image, docker" in said


def test_an_empty_choice_of_sandbox_is_auto(command_environment: dict[str, str]) -> None:
    values = read(command_environment, "RATCHET_SANDBOX", RATCHET_SANDBOX="")
    assert values == {"RATCHET_SANDBOX": "auto"}


@pytest.mark.parametrize(
    "value",
    ["nonsense", "http://host/x", "postgres://", "sqlite:///x", "postgres://u:secret@h:port/db"],
)
def test_an_address_that_is_no_database_is_one_line_that_tells_no_password(
    command_environment: dict[str, str], value: str
) -> None:
    said = refusal(command_environment, DATABASE_URL=value)
    assert "postgres://USER:PASSWORD@HOST:5432/NAME" in said
    assert "secret" not in said


def test_beyond_loopback_a_key_is_asked_for(command_environment: dict[str, str]) -> None:
    assert "SECRET_KEY" in refusal(command_environment, ALLOWED_HOSTS="ratchet.example.org")


def test_beyond_loopback_debug_is_refused(command_environment: dict[str, str]) -> None:
    extra = {"ALLOWED_HOSTS": "ratchet.example.org", "SECRET_KEY": "x" * 60, "DEBUG": "on"}
    assert "DEBUG" in refusal(command_environment, **extra)


def test_beyond_loopback_cookies_need_https(command_environment: dict[str, str]) -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT")
    extra = {"ALLOWED_HOSTS": "ratchet.example.org", "SECRET_KEY": "x" * 60}
    assert read(command_environment, *names, **extra) == dict.fromkeys(names, True)


def test_a_home_that_cannot_be_is_one_line(
    command_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    said = refusal(command_environment, RATCHET_HOME=str(tmp_path / "file" / "home"))
    assert "RATCHET_HOME" in said


@pytest.mark.parametrize("key", ["script-src", "default-src", "frame-ancestors"])
def test_no_page_may_run_inline_scripts(command_environment: dict[str, str], key: str) -> None:
    policy = read(command_environment, "SECURE_CSP")["SECURE_CSP"]
    assert not any("unsafe" in source for source in policy[key])
