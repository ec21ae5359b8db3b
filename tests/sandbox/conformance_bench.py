"""What the suites run on: a back-end, what it offers, and short ways to use it.

Commands of the suites need bash, coreutils, util-linux, awk and Debian's perl-base, nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.backends.fake import FakeCommand
from sandbox.base import Backend, Sandbox
from sandbox.contracts import (
    ArtifactSpec,
    ExecResult,
    ImageSpec,
    Limits,
    Mount,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
)

DOCKERFILE = b"FROM debian:bookworm-slim\nWORKDIR /app\nCOPY data/ /app/data/\n"
MIB = 1024 * 1024
NO_LIMITS = Limits()
NO_NETWORK = NetworkPolicy()

Fragile = AbstractContextManager[tuple[Backend, Callable[[], None]]]


def image_spec(dockerfile: bytes = DOCKERFILE, *files: SandboxFile) -> ImageSpec:
    """An image for the tests; two small files lie under /app/data."""
    data = (
        SandboxFile("data/one.txt", b"one\n"),
        SandboxFile("data/run.sh", b"#!/bin/sh\n", 0o755),
    )
    return ImageSpec((SandboxFile("Dockerfile", dockerfile), *data, *files), None, None, (), True)


@dataclass
class Bench:
    """A back-end to be tried. `with_script` gives one that follows a script, where that matters.

    `kind`: fake, bubblewrap, bubblewrap-image or docker. `fragile` opens a second back-end of the
    same kind, and a function that cuts it off from what holds its sandboxes.
    """

    with_script: Callable[[Sequence[FakeCommand]], Backend]
    kind: str = "bubblewrap"
    offered: frozenset[NetworkMode] = frozenset((NetworkMode.NO_NETWORK,))
    fragile: Callable[[], Fragile] | None = None

    @property
    def backend(self) -> Backend:
        """The back-end."""
        return self.with_script(())

    @property
    def has_docker_builder(self) -> bool:
        """Whether Docker builds the images, so that nothing of a Dockerfile is refused."""
        return self.kind in ("docker", "bubblewrap-image")

    @property
    def has_users(self) -> bool:
        """Whether other users than root exist in its sandboxes."""
        return not any("only root exists" in line for line in self.backend.enforcement())

    @property
    def has_memory_group(self) -> bool:
        """Whether the kernel itself adds up a sandbox's memory."""
        return not any("no memory cgroup" in line for line in self.backend.enforcement())

    @property
    def is_disk_measured(self) -> bool:
        """Whether the disk limit strikes by looking now and then, not by itself."""
        return any("disk is measured" in line for line in self.backend.enforcement())

    @property
    def users(self) -> tuple[str | None, ...]:
        """The users that hostile commands are tried as: root, and an ordinary one."""
        return (None, "nobody") if self.has_users else (None,)

    def spec(self, dockerfile: bytes = DOCKERFILE, *files: SandboxFile) -> ImageSpec:
        """As `image_spec`, for this kind."""
        is_host_root = self.kind in ("fake", "bubblewrap")
        return replace(image_spec(dockerfile, *files), is_host_root_compatible=is_host_root)

    def start(
        self,
        limits: Limits = NO_LIMITS,
        script: Sequence[FakeCommand] = (),
        *,
        spec: ImageSpec | None = None,
        network: NetworkPolicy = NO_NETWORK,
        mounts: Sequence[Mount] = (),
    ) -> Sandbox:
        """A fresh sandbox, of the small image if no other is named."""
        backend = self.with_script(script)
        image = backend.prepare(spec or self.spec())
        return backend.start(image, limits, network, mounts=mounts)


def sh(sandbox: Sandbox, command: str, seconds: float = 20.0, **options: object) -> ExecResult:
    """Run a line of bash."""
    line = ["bash", "-c", command]
    return sandbox.exec(line, timeout_seconds=seconds, **options)  # type: ignore[arg-type]


def out(sandbox: Sandbox, command: str, seconds: float = 20.0, **options: object) -> str:
    """The standard output of a line of bash that must succeed."""
    result = sh(sandbox, command, seconds, **options)
    assert result.exit_status == 0, result
    return result.stdout.decode()


def perl(
    sandbox: Sandbox, program: str, *words: str, seconds: float = 20.0, **options: object
) -> ExecResult:
    """Run a Perl program."""
    line = ["perl", "-e", program, *words]
    return sandbox.exec(line, timeout_seconds=seconds, **options)  # type: ignore[arg-type]


def everything(sandbox: Sandbox, path: str, *exclude: str) -> tuple[SandboxFile, ...]:
    """All files below a path."""
    return sandbox.read_files([ArtifactSpec(path, tuple(exclude))], cap_bytes=50 * MIB)


def content(sandbox: Sandbox, path: str) -> dict[str, bytes]:
    """Name below a path → content, for regular files."""
    files = everything(sandbox, path)
    return {f.path[len(path) + 1 :]: f.data for f in files if f.link is None}


COMMANDS = (
    "for p in /proc/[0-9]*; do [ -r $p/cmdline ] || continue;"
    " echo ${p#/proc/} $(tr '\\0' ' ' 2>/dev/null <$p/cmdline); done 2>/dev/null"
)
"""A line of bash that lists the living processes."""


def living(sandbox: Sandbox, *words: str) -> list[str]:
    """The lines of living processes that hold one of these words."""
    lines = out(sandbox, COMMANDS).splitlines()
    return [line for line in lines if any(word in line for word in words)]


# -- the host's side --------------------------------------------------------------------------


def host_processes(text: str) -> list[int]:
    """Ids, as the host has them, of living processes whose command line holds a text."""
    folders = (folder for folder in Path("/proc").iterdir() if folder.name.isdecimal())
    return [int(folder.name) for folder in folders if text.encode() in _command_line(folder)]


def _command_line(folder: Path) -> bytes:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def host_children(pid: int) -> list[int]:
    """Ids of the children of a process, and of its threads."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(word) for word in file.read_text().split()]
    return found


def first_process_beside(pid: int) -> int:
    """The host's id of the first process in the process namespace of another."""
    space = os.readlink(f"/proc/{pid}/ns/pid")
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and _is_first_in(folder, space):
            return int(folder.name)
    raise LookupError(f"no first process beside {pid}")


def _is_first_in(folder: Path, space: str) -> bool:
    try:
        if os.readlink(folder / "ns/pid") != space:
            return False
        lines = (folder / "status").read_text().splitlines()
    except OSError:
        return False
    return next(line for line in lines if line.startswith("NSpid:")).split()[-1] == "1"


@contextmanager
def host_file(data: bytes = b"secret of the host\n") -> Iterator[Path]:
    """A folder of the host that everybody may enter and write, with one file in it."""
    folder = Path("/tmp") / f"host-{os.urandom(6).hex()}"
    folder.mkdir()
    folder.chmod(0o777)
    file = folder / "secret"
    file.write_bytes(data)
    file.chmod(0o666)
    try:
        yield file
        assert file.read_bytes() == data
        assert [path.name for path in folder.iterdir()] == ["secret"]
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
