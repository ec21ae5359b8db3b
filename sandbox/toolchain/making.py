"""The toolchain's folder on this machine: fetched and laid out once, then only read."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files as resources
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.toolchain.interpreter import NoInterpreter, copy_interpreter

_PIP_OPTIONS = (
    *("--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-compile"),
    *("--require-hashes", "--only-binary=:all:", "--platform", "any"),
    *("--implementation", "py", "--abi", "none", "--python-version", "3.9"),
)
_LAYOUT = "1"
"""Raised whenever the same parts would be laid out otherwise."""


@functools.cache
def requirements() -> Mapping[str, str]:
    """The locked requirements by place: "lib", then "extra/NAME" for every further package."""
    found: dict[str, list[str]] = {"lib": []}
    place = "lib"
    text = resources("sandbox.toolchain").joinpath("toolchain.lock").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("# ["):
            place = f"extra/{line[3:-1]}"
            found[place] = []
        elif line and not line.startswith("#"):
            found[place].append(line)
    return {place: "\n".join(lines) + "\n" for place, lines in found.items()}


def digest() -> str:
    """Names the toolchain by all that it is made of, the running Python included."""
    total = hashlib.sha256(f"{_LAYOUT}\0{sys.version}\0{sys.base_prefix}\0".encode())
    for text in requirements().values():
        total.update(text.encode())
    for path, data in _parts().items():
        total.update(f"{path}\0".encode() + data)
    return total.hexdigest()[:16]


def made(home: Path, at: str) -> Path:
    """The toolchain's folder below `home`, made when it is not there; seen at `at` in sandboxes.

    Raises SandboxUnavailable when its packages cannot be fetched or laid out.
    """
    folder = home / digest()
    if folder.is_dir():
        return folder
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _make(folder, at)
    except OSError as error:
        raise SandboxUnavailable(f"the toolchain cannot be laid out: {error}") from error
    return folder


def _make(folder: Path, at: str) -> None:
    """Make it aside and give it its name when it is whole; the lock is held."""
    for left in folder.parent.glob("partial.*"):  # of one that was killed
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix="partial.", dir=folder.parent))
    try:
        for path, data in _parts().items():
            target = partial / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o755)
        for place, text in requirements().items():
            _install(text, partial / place)
        try:
            copy_interpreter(partial / "python", f"{at}/python")
        except NoInterpreter:  # tests then run on the image's own Python, where it has one
            shutil.rmtree(partial / "python", ignore_errors=True)
        _compile(partial / "lib")
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@functools.cache
def _parts() -> Mapping[str, bytes]:
    """The programs, by their path in the toolchain, sorted.

    Read once: every trial and every gate asks for the digest, and what is laid out under it has to
    be what it was made of.
    """
    top = resources("sandbox.toolchain.parts")
    found = {name: top.joinpath(name).read_bytes() for name in ("functions.sh", "run.py")}
    for folder in ("bin", "libexec"):
        for part in top.joinpath(folder).iterdir():
            found[f"{folder}/{part.name}"] = part.read_bytes()
    return dict(sorted(found.items()))


def _pip() -> list[str]:
    base = getattr(sys, "_base_executable", sys.executable)
    return [sys.executable if importlib.util.find_spec("pip") else base, "-I", "-m", "pip"]


def _install(text: str, target: Path) -> None:
    """Fetch wheels that run on any platform, each of the content that the lock names."""
    lock = target.parent / f"{target.name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(text)
    done = subprocess.run(
        [*_pip(), "install", *_PIP_OPTIONS, "--target", str(target), "-r", str(lock)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PIP_REQUIRE_VIRTUALENV": "0"},
    )
    if done.returncode:
        last = (done.stderr.strip() or "no reason given").rsplit("\n", 1)[-1]
        raise SandboxUnavailable(
            f"the toolchain's packages cannot be fetched: {last}; they are fetched once, by pip,"
            " so make its package index reachable and try again"
        )
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _compile(folder: Path) -> None:
    """Compile for the toolchain's own Python, so that no run has to."""
    command = [sys.executable, "-I", "-m", "compileall", "-q", "--invalidation-mode"]
    subprocess.run([*command, "unchecked-hash", str(folder)], check=False, capture_output=True)
