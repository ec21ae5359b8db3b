"""The embedded PostgreSQL: started on demand, shared, gone with its last user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import ROOT
from tests.house.processes import wait_until
from webapp.embedded import postgres
from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.postgres import EmbeddedPostgres, is_running, keeper_pid

USE = """
import sys, pathlib
from webapp.embedded.postgres import EmbeddedPostgres
handle = EmbeddedPostgres(pathlib.Path(sys.argv[1]), is_durable=False)
print(handle.ensure_running(), flush=True)
sys.stdin.read()
"""


def start_user(home: Path) -> subprocess.Popen[str]:
    """Another process that uses the server until its input ends."""
    user = subprocess.Popen(
        [sys.executable, "-c", USE, str(home)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    assert "ratchet-postgres-" in user.stdout.readline()
    return user


def connect(folder: Path) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host=str(folder), user="ratchet", dbname="ratchet", autocommit=True)


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedPostgres]:
    handle = EmbeddedPostgres(home, is_durable=False)
    yield handle
    handle.release()


def test_data_outlive_the_server(server: EmbeddedPostgres, home: Path) -> None:
    with connect(server.ensure_running()) as link:
        link.execute("CREATE TABLE kept AS SELECT 7 AS number")
    server.release()
    assert not is_running(home)
    with connect(server.ensure_running()) as link:
        assert link.execute("SELECT number FROM kept").fetchone() == (7,)


def test_it_listens_on_no_port_and_in_a_private_folder(server: EmbeddedPostgres) -> None:
    folder = server.ensure_running()
    assert folder.stat().st_mode & 0o777 == 0o700
    with connect(folder) as link:
        assert link.execute("SHOW listen_addresses").fetchone() == ("",)


def test_two_processes_share_one_server(server: EmbeddedPostgres, home: Path) -> None:
    folder = server.ensure_running()
    keeper = keeper_pid(home)
    other = start_user(home)
    assert keeper_pid(home) == keeper
    other.communicate("", timeout=20)
    with connect(folder) as link:  # the other's end is not ours
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_a_killed_user_leaves_no_server(home: Path) -> None:
    user = start_user(home)
    folder = Path(postgres.Layout(home).address.read_text().splitlines()[0])
    user.kill()
    user.communicate()
    wait_until(lambda: not is_running(home), 15, "the server is gone")
    assert not folder.exists()


def test_a_killed_keeper_takes_the_server_along_and_is_replaced(
    server: EmbeddedPostgres, home: Path
) -> None:
    server.ensure_running()
    pid_file = postgres.Layout(home).data / "postmaster.pid"
    pid = int(pid_file.read_text().splitlines()[0])
    keeper = keeper_pid(home)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not _lives(pid), 15, "the server ended with its keeper")
    with connect(server.ensure_running(is_checked=True)) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_it_recovers_when_everything_was_killed(server: EmbeddedPostgres, home: Path) -> None:
    with connect(server.ensure_running()) as link:
        link.execute("CREATE TABLE kept AS SELECT 7 AS number")
        link.execute("CHECKPOINT")
    pid = int((postgres.Layout(home).data / "postmaster.pid").read_text().splitlines()[0])
    keeper = keeper_pid(home)
    assert keeper is not None
    for victim in (pid, keeper):
        os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not is_running(home), 15, "the keeper's lock is free")
    with connect(server.ensure_running(is_checked=True)) as link:
        assert link.execute("SELECT number FROM kept").fetchone() == (7,)


def test_a_lock_file_that_names_a_stranger_is_no_obstacle(
    server: EmbeddedPostgres, home: Path
) -> None:
    server.ensure_running()
    server.release()
    lock_file = postgres.Layout(home).data / "postmaster.pid"
    lock_file.write_text(f"{os.getpid()}\n{lock_file.parent}\n1\n5432\n\n\n\nready\n")
    with connect(server.ensure_running()) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_a_half_made_folder_is_made_anew(server: EmbeddedPostgres, home: Path) -> None:
    draft = postgres.Layout(home).root / "data.new"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    with connect(server.ensure_running()) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_a_long_path_and_a_private_parent_are_no_obstacle(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    handle = EmbeddedPostgres(private / ("long " * 30) / "home", is_durable=False)
    with connect(handle.ensure_running()) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)
    handle.release()


def test_what_cannot_work_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedUnavailable, match="RATCHET_HOME") as caught:
        EmbeddedPostgres(tmp_path / "file").ensure_running()
    assert "\n" not in str(caught.value)


def test_files_of_another_version_are_refused_by_name(server: EmbeddedPostgres, home: Path) -> None:
    data = postgres.Layout(home).data
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedUnavailable, match=r"made by PostgreSQL 9, this is 18"):
        server.ensure_running()


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
