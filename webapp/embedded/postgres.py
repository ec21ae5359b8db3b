"""The embedded PostgreSQL, as its users see it: started on demand, gone with the last user.

Every process that connects holds a shared lock on `users.lock` until it ends. A small keeper
process (`postgres_keeper`) owns the server; when nobody holds that lock any more, it stops the
server. So nothing outlives its users, not even after `kill -9`, and no process has to be told about
the others. The server listens on a Unix socket in a private folder, never on TCP.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.locks import FileLock
from webapp.keys import key_variables

START_SECONDS = 90.0  # a first start on a slow disk, database files included
STOP_SECONDS = 20.0
USER = "ratchet"
DATABASE = "ratchet"
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Layout:
    """Where things are, under one home."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "postgres"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def address(self) -> Path:
        """Two lines: the socket's folder, the keeper's process id."""
        return self.root / "address"

    @property
    def users_lock(self) -> Path:
        return self.root / "users.lock"

    @property
    def keeper_lock(self) -> Path:
        return self.root / "keeper.lock"

    @property
    def start_lock(self) -> Path:
        return self.root / "start.lock"


class EmbeddedPostgres:
    """This process's use of the server of one home. Safe to call from several threads."""

    def __init__(self, home: Path, *, is_durable: bool = True) -> None:
        """`is_durable=False` trades crash safety of the machine for speed; for tests only."""
        self.layout = Layout(home)
        self._is_durable = is_durable
        self._mutex = threading.Lock()
        self._users: FileLock | None = None
        self._owner_pid = 0
        self._socket_folder: Path | None = None

    def ensure_running(self, *, is_checked: bool = False) -> Path:
        """The folder of the server's socket; starts the server when it is not there.

        `is_checked=True` looks again although this process used the server before (after a lost
        connection). Raises EmbeddedUnavailable.
        """
        with self._mutex:
            if self._socket_folder is None or is_checked or self._owner_pid != os.getpid():
                self._socket_folder = self._join()
            return self._socket_folder

    def release(self) -> None:
        """End this process's use. The last user waits until the server is down."""
        with self._mutex:
            users, self._users, self._socket_folder = self._users, None, None
            if users is None or self._owner_pid != os.getpid():
                return
            if users.try_exclusive():
                _stop_keeper(self.layout)
            elif not users.try_shared():
                _wait_keeper_gone(self.layout)  # it found the lock free just before us
            users.close()

    def _join(self) -> Path:
        try:
            self.layout.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            return self._join_locked()
        except OSError as error:
            raise EmbeddedUnavailable(
                f"the embedded PostgreSQL cannot use {self.layout.root}: {error.strerror}"
                " (set RATCHET_HOME to a writable folder, or DATABASE_URL to a server)"
            ) from error

    def _join_locked(self) -> Path:
        if self._users is None or self._owner_pid != os.getpid():
            users = FileLock(self.layout.users_lock)
            if not users.wait_shared(STOP_SECONDS):
                users.close()
                raise EmbeddedUnavailable(
                    f"the embedded PostgreSQL under {self.layout.root} is stopping and does not"
                    " end; try again in a minute"
                )
            if self._users is None:
                atexit.register(self.release)
            self._users, self._owner_pid = users, os.getpid()
        start = FileLock(self.layout.start_lock)
        try:
            if not start.wait_exclusive(START_SECONDS):
                raise EmbeddedUnavailable(
                    f"another process has been starting the embedded PostgreSQL for"
                    f" {START_SECONDS:.0f} s; see {self.layout.log}"
                )
            return self._find_or_start()
        finally:
            start.close()

    def _find_or_start(self) -> Path:
        """Under the start lock. A keeper without an address is on its way up or down."""
        deadline = time.monotonic() + START_SECONDS
        while is_running(self.layout.home):
            with contextlib.suppress(EmbeddedUnavailable):
                return _read_address(self.layout)[0]
            if time.monotonic() >= deadline:
                break
            time.sleep(0.02)
        _start_keeper(self.layout, is_durable=self._is_durable)
        return _read_address(self.layout)[0]


_handles: dict[Path, EmbeddedPostgres] = {}
_handles_mutex = threading.Lock()
_keepers: list[subprocess.Popen[bytes]] = []


def shared(home: Path, *, is_durable: bool = True) -> EmbeddedPostgres:
    """The one handle of this process for a home."""
    with _handles_mutex:
        if home not in _handles:
            _handles[home] = EmbeddedPostgres(home, is_durable=is_durable)
        return _handles[home]


def is_running(home: Path) -> bool:
    """Whether a keeper, and so a server, is there. Changes nothing."""
    layout = Layout(home)
    if not layout.keeper_lock.exists():
        return False
    lock = FileLock(layout.keeper_lock)
    try:
        return not lock.try_shared()
    finally:
        lock.close()


def keeper_pid(home: Path) -> int | None:
    """The process id of the keeper, when there is one."""
    if not is_running(home):
        return None
    with contextlib.suppress(EmbeddedUnavailable):
        return _read_address(Layout(home))[1]
    return None


def _read_address(layout: Layout) -> tuple[Path, int]:
    try:
        folder, pid = layout.address.read_text().splitlines()
        return Path(folder), int(pid)
    except (OSError, ValueError) as error:
        raise EmbeddedUnavailable(
            f"the embedded PostgreSQL left no address in {layout.address}; see {layout.log}"
        ) from error


def _start_keeper(layout: Layout, *, is_durable: bool) -> None:
    command = [sys.executable, "-m", "webapp.embedded.postgres_keeper", str(layout.home)]
    if not is_durable:
        command.append("--not-durable")
    unseen = {"RATCHET_SUPERVISOR", *key_variables()}
    keeper = subprocess.Popen(
        command,
        cwd=_PROJECT,
        env={name: value for name, value in os.environ.items() if name not in unseen},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C on the terminal is for its users, not for the keeper
    )
    assert keeper.stdout is not None
    with keeper.stdout:
        said = _read_report(keeper.stdout.fileno())
    if said != "ready":
        keeper.kill()
        keeper.wait()
        raise EmbeddedUnavailable(said)
    _keepers.append(keeper)  # it lives on; kept so that nobody takes it for a forgotten child


def _read_report(fd: int) -> str:
    """The keeper's one line: `ready`, or what went wrong."""
    data = b""
    while not data.endswith(b"\n"):
        if not select.select([fd], [], [], START_SECONDS)[0]:
            return f"the embedded PostgreSQL did not start within {START_SECONDS:.0f} s"
        piece = os.read(fd, 4096)
        if not piece:
            break
        data += piece
    lines = data.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "the embedded PostgreSQL's keeper ended without a word"


def _stop_keeper(layout: Layout) -> None:
    pid = keeper_pid(layout.home)
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    _wait_keeper_gone(layout)


def _wait_keeper_gone(layout: Layout) -> None:
    lock = FileLock(layout.keeper_lock)
    lock.wait_shared(STOP_SECONDS)
    lock.close()
