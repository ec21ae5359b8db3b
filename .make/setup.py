"""Make .venv from requirements.lock. Run by .make/setup with a fitting Python; stdlib only.

Safe to run twice at once: one works, the other waits. A half-made environment is made anew. The
copy of the lock in .venv/.installed is written last and says that everything is there.
"""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

VENV = Path(".venv")
LOCK = Path("requirements.lock")
GUARD = Path("var/setup.lock")
STAMP = VENV / ".installed"
NEEDED_BYTES = 1 << 30


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def is_done() -> bool:
    return STAMP.is_file() and STAMP.read_bytes() == LOCK.read_bytes() and is_working()


def is_working() -> bool:
    """Whether the environment's Python starts; a moved or removed base Python breaks it."""
    python = VENV / "bin" / "python"
    try:
        return (
            subprocess.run(
                [python, "-c", "import pip"], capture_output=True, check=False
            ).returncode
            == 0
        )
    except OSError:
        return False


def make_environment() -> None:
    """A fresh environment, unless a whole one is there that only has another lock installed."""
    if STAMP.exists() and is_working():
        STAMP.unlink()
        return
    if VENV.exists():
        say("the environment in .venv is not whole, making it anew")
        shutil.rmtree(VENV)
    say(f"making .venv with Python {sys.version.split()[0]}")
    venv.create(VENV, with_pip=True, symlinks=True)


def install() -> int:
    """Install the lock; by uv where it is and can, else by pip. Returns a status."""
    python = str(VENV / "bin" / "python")
    options = ["--quiet", "--no-deps", "--require-hashes", "-r", str(LOCK)]
    uv = shutil.which("uv")
    if uv:
        command = [uv, "pip", "install", "--python", python, *options]
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0:
            return 0
        say("uv could not, pip tries")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return subprocess.run([*command, *options], stdin=subprocess.DEVNULL, check=False).returncode


def work() -> int:
    if is_done():
        return 0
    free = shutil.disk_usage(".").free
    if free < NEEDED_BYTES:
        say(f"{free >> 20} MiB free on this disk, {NEEDED_BYTES >> 20} needed: free some")
        return 1
    started = time.monotonic()
    make_environment()
    say(f"installing {LOCK.read_text().count('==')} packages from {LOCK}")
    status = install()
    if status:
        say(
            "the packages could not be installed, for the reason above:"
            " is a package index reachable, and the disk not full?"
        )
        return status
    shutil.copyfile(LOCK, STAMP)
    say(f"done in {time.monotonic() - started:.0f} s")
    return 0


def main() -> int:
    os.umask(0o022)
    try:
        GUARD.parent.mkdir(mode=0o700, exist_ok=True)
        with GUARD.open("w") as guard:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another one is at it, waiting")
                fcntl.flock(guard, fcntl.LOCK_EX)
            return work()
    except KeyboardInterrupt:
        say("stopped")
        return 130
    except (OSError, subprocess.SubprocessError) as error:
        remedy = (
            "free some space"
            if getattr(error, "errno", None) == errno.ENOSPC
            else "may this folder be written?"
        )
        say(f"{error}: {remedy}")
        return 1


sys.exit(main())
