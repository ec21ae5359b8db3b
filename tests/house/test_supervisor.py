"""The supervisor: parts that die come back, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house.processes import naming, wait_until
from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.supervisor import Part, Supervisor, listen, worker_parts

BEAT = Part("beat", ("beat", "--loglevel", "WARNING", "--pidfile="))
BROKEN = Part("broken", ("web", "no-descriptor"))

SUPERVISE = """
import sys
from webapp.embedded.supervisor import Part, Supervisor
beat = Part("beat", ("beat", "--loglevel", "WARNING", "--pidfile="))
try:
    with Supervisor([beat], write=lambda line: None) as supervisor:
        while not supervisor.pids():
            pass
        print("up", flush=True)
        supervisor.wait()
except KeyboardInterrupt:
    pass
"""


def start_supervising(environment: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_a_killed_part_is_started_again(command_environment: dict[str, str]) -> None:
    lines: list[str] = []
    with Supervisor([BEAT], write=lines.append, environment=command_environment) as supervisor:
        wait_until(supervisor.pids, 10, "a first process")
        first = supervisor.pids()["beat"]
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: supervisor.pids()["beat"] != first, 10, "a second process")
    assert any("status -9" in line for line in lines)


@pytest.mark.slow
def test_a_part_that_never_starts_is_given_up_by_name(command_environment: dict[str, str]) -> None:
    lines: list[str] = []
    with Supervisor([BROKEN], write=lines.append, environment=command_environment) as supervisor:
        wait_until(lambda: supervisor.failure, 60, "it gave up")
        supervisor.wait()
    assert "broken does not stay up" in supervisor.failure
    assert any("no-descriptor" in line for line in lines)


def test_what_is_hidden_from_a_part_is_not_in_proc_either(
    command_environment: dict[str, str],
) -> None:
    beat = Part(BEAT.name, BEAT.arguments, hidden=frozenset({"MODEL_KEY"}))
    given = {**command_environment, "MODEL_KEY": "s3cret", "MODEL_NAME": "shown"}
    with Supervisor([beat], write=lambda line: None, environment=given) as supervisor:
        wait_until(supervisor.pids, 10, "a process")
        seen = Path(f"/proc/{supervisor.pids()['beat']}/environ").read_bytes()
    assert b"s3cret" not in seen
    assert b"MODEL_NAME=shown" in seen


def test_leaving_ends_every_part_and_what_it_left_behind(
    command_environment: dict[str, str], home: Path
) -> None:
    with Supervisor(
        worker_parts(1), write=lambda line: None, environment=command_environment
    ) as supervisor:
        wait_until(lambda: len(supervisor.pids()) == 3, 10, "three processes")
        worker = supervisor.pids()["worker1"]
        marked = dict(
            entry.split("=", 1)
            for entry in Path(f"/proc/{worker}/environ").read_text().split("\0")
            if "=" in entry
        )
        stray = subprocess.Popen(
            ["sleep", "600"],
            start_new_session=True,
            env={"RATCHET_SUPERVISOR": marked["RATCHET_SUPERVISOR"]},
        )
    assert stray.wait(10) == -signal.SIGKILL
    assert not naming(str(home))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all(
    command_environment: dict[str, str], home: Path, number: signal.Signals
) -> None:
    process = start_supervising(command_environment)
    process.send_signal(number)
    assert process.wait(20) == 0
    assert not naming(str(home))


def test_parts_end_when_their_supervisor_is_killed(
    command_environment: dict[str, str], home: Path
) -> None:
    process = start_supervising(command_environment)
    process.kill()
    process.wait()
    wait_until(lambda: not naming(str(home)), 20, "the parts are gone")


def test_a_taken_port_is_one_line_with_the_remedy() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(EmbeddedUnavailable, match="--port") as caught:
            listen("127.0.0.1", port)
    assert str(port) in str(caught.value)
    assert "\n" not in str(caught.value)
