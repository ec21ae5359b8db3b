"""The contract that every back-end keeps; one conformance suite tests them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import IO, Protocol, Self, runtime_checkable

from sandbox.contracts import (
    HOST_NAME,
    ArtifactSpec,
    ExecResult,
    Image,
    ImageSpec,
    Limits,
    Mount,
    NetworkPolicy,
    SandboxFile,
    Trace,
    TrialResult,
    TrialSpec,
    Usage,
)


class Sandbox(Protocol):
    """One isolated container, from start to stop. Use it as a context manager."""

    def exec(
        self,
        command: Sequence[str],
        *,
        timeout_seconds: float,
        user: str | None = None,
        env: Sequence[tuple[str, str]] = (),
        stdin: bytes | None = None,
        workdir: str | None = None,
        is_traced: bool = False,
    ) -> ExecResult:
        """Run a command to its end. A time-out kills everything in the sandbox.

        Raises SandboxUnavailable when the sandbox could not run it.
        """
        ...

    def write_files(self, files: Sequence[SandboxFile], at: str) -> None:
        """Put files under the absolute folder `at`, over whatever is there, following no link."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a path inside the sandbox, following no link; a missing one is no error."""
        ...

    def read_files(
        self, sources: Sequence[ArtifactSpec], *, cap_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """Read trees of regular files and links, with absolute paths, in order of path.

        A missing source yields nothing. Raises TooLarge when more than `cap_bytes` would be read,
        TooDeep when folders are nested too deep to be read.
        """
        ...

    def kill_all(self) -> None:
        """End every process in the sandbox; the file system stays."""
        ...

    def trace(self) -> Trace | None:
        """What the traced commands did so far, or None when nothing was traced."""
        ...

    def usage(self) -> Usage:
        """What was spent so far."""
        ...

    def stop(self) -> None:
        """End it and leave nothing behind. May be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Backend(Protocol):
    """A way to run sandboxes."""

    name: str

    def prepare(self, spec: ImageSpec) -> Image:
        """Build the image, once per digest.

        Raises ImageBuildFailed (the bundle's fault), Refused, or SandboxUnavailable.
        """
        ...

    def start(
        self,
        image: Image,
        limits: Limits,
        network: NetworkPolicy,
        *,
        mounts: Sequence[Mount] = (),
        party: str = "",
        host_name: str = HOST_NAME,
    ) -> Sandbox:
        """Start a fresh sandbox, as soon as there is room for it on this machine.

        `host_name` is what it calls itself.
        `party` names on whose behalf (a run): those who wait are served in turn, party by party.
        Raises Refused or SandboxUnavailable.
        """
        ...

    def enforcement(self) -> tuple[str, ...]:
        """One line per limit that this back-end cannot enforce exactly here."""
        ...

    def close(self) -> None:
        """Release what the back-end itself holds (helper processes, connections)."""
        ...


class ImageSource(Protocol):
    """Where root file systems come from that a back-end does not build itself: a Docker engine."""

    def prepare(self, spec: ImageSpec) -> Image:
        """Build or find the image; see `Backend.prepare`. Its `ref` names its content."""
        ...

    def export(self, image: Image) -> AbstractContextManager[IO[bytes]]:
        """The image's whole root file system as a tar stream. Raises SandboxUnavailable."""
        ...


class TrialRunner(Protocol):
    """What the floor above uses: whole trials, never single commands."""

    def run(self, spec: TrialSpec) -> TrialResult:
        """Run one trial in fresh sandboxes. Machinery that breaks is an outcome, never raised."""
        ...

    def prepare(self, spec: ImageSpec) -> Image:
        """Build the image; see `Backend.prepare`."""
        ...


Work = Callable[[Sandbox], ExecResult]
"""What a solver does in its sandbox that is no single command; ends as a command would."""


@runtime_checkable
class AttemptRunner(Protocol):
    """Runs trials whose solver works from outside, command by command."""

    def attempt(self, spec: TrialSpec, work: Work) -> TrialResult:
        """Run one trial as `TrialRunner.run` does, with `work` in the place of its command.

        What `work` raises passes through, unless it is a SandboxError.
        """
        ...
