"""The production broker: the same worker on Redis, and the files that its health checks read."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house.processes import naming, wait_until

pytestmark = [pytest.mark.redis, pytest.mark.workers, pytest.mark.slow]


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A server on a free port of loopback, which keeps nothing."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as link:
            return link.connect_ex(("127.0.0.1", port)) == 0

    wait_until(answers, 10, "Redis answers")
    yield f"redis://127.0.0.1:{port}/0"
    server.terminate()
    server.wait()


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "--app=webapp.celery", *arguments],
        cwd=ROOT,
        env=environment,
    )


def test_work_flows_over_redis_and_shows_that_it_does(
    command_environment: dict[str, str], home: Path, redis_url: str
) -> None:
    environment = {**command_environment, "CELERY_BROKER_URL": redis_url}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0"],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    worker = start(
        environment, "worker", "--queues=default", "--pool=threads", "--concurrency=1",
        "--without-gossip", "--without-mingle",
    )  # fmt: skip
    beat = start(environment, "beat", "--pidfile=")
    try:
        alive = home / f"alive-{socket.gethostname()}"
        wait_until(alive.exists, 60, "the worker's heartbeat")
        wait_until((home / "tended").exists, 60, "the tending job has run")
    finally:
        for process in (beat, worker):
            process.terminate()
        assert [process.wait(30) for process in (beat, worker)] == [0, 0]
    assert not [pid for pid in naming(str(home)) if pid != os.getpid()]
