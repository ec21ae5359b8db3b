"""docker-compose.yml, as the Compose tool itself reads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

SECRETS = {"SECRET_KEY": "a-secret", "POSTGRES_PASSWORD": "another"}


def compose(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("docker-compose")
    return subprocess.run(
        [str(program), "--env-file", os.devnull, *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **extra},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    done = compose("config", "--format", "json", **SECRETS)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)["services"]
    return read


def test_it_is_valid() -> None:
    done = compose("config", "--quiet", **SECRETS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("missing", SECRETS)
def test_secrets_come_from_outside(missing: str) -> None:
    given = {name: value for name, value in SECRETS.items() if name != missing}
    done = compose("config", "--quiet", **given)
    assert f"required variable {missing} is missing" in done.stderr  # its status says nothing


def test_the_whole_house_is_there(services: dict[str, Any]) -> None:
    assert {"web", "worker", "tender", "beat", "postgres", "redis"} < set(services)


def test_everything_that_stays_has_a_health_check(services: dict[str, Any]) -> None:
    staying = {name for name, service in services.items() if service.get("restart") != "no"}
    assert staying == {name for name, service in services.items() if "healthcheck" in service}


def test_only_the_web_page_is_reachable_and_from_this_machine_only(
    services: dict[str, Any],
) -> None:
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(ports) == {"web"}
    assert [port["host_ip"] for port in ports["web"]] == ["127.0.0.1"]


def test_workers_may_make_sandboxes_and_the_rest_may_not(services: dict[str, Any]) -> None:
    open_ones = {
        name
        for name, service in services.items()
        if "seccomp=unconfined" in service.get("security_opt", [])
    }
    assert open_ones == {"worker", "tender"}
    assert "systempaths=unconfined" in services["worker"]["security_opt"]


def test_nobody_holds_a_docker_socket(services: dict[str, Any]) -> None:
    mounts = [mount for service in services.values() for mount in service.get("volumes", [])]
    assert mounts
    assert not any("docker.sock" in str(mount) for mount in mounts)
