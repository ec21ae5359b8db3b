"""A back-end whose commands follow a script; its files are real, in memory.

    backend = FakeBackend([FakeCommand(exit_status=3), FakeCommand(writes=(file,))])

Every `exec` takes the next command of the script; when there is none left it raises
`ScriptExhausted`, naming the command that found none. `FakeRunner` does the same for whole trials.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from sandbox.contracts import (
    HOST_NAME,
    OUTPUT_CAP_BYTES,
    ArtifactSpec,
    ExecResult,
    Image,
    ImageSpec,
    Limits,
    Mount,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
    Trace,
    TrialResult,
    TrialSpec,
    Usage,
)
from sandbox.errors import ImageBuildFailed, Refused, SandboxUnavailable, TooLarge
from sandbox.images import parse_dockerfile
from sandbox.warden.reading import is_excluded


class ScriptExhausted(AssertionError):
    """More was asked of a fake than its script says. The message names what was asked."""


@dataclass(frozen=True, slots=True)
class FakeCommand:
    """What one `exec` does: its result, and the files it leaves (absolute paths).

    With `error` set, the machinery breaks instead. `expects`, when set, must occur in the command.
    """

    exit_status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    seconds: float = 0.001
    writes: tuple[SandboxFile, ...] = ()
    removes: tuple[str, ...] = ()
    usage: Usage | None = None
    trace: Trace | None = None
    error: str = ""
    expects: str = ""


class FakeSandbox:
    """A sandbox of a `FakeBackend`."""

    def __init__(self, backend: FakeBackend) -> None:
        self._backend = backend
        self._files: dict[str, SandboxFile] = {}
        self._usage = Usage(cpu_seconds=0.0, disk_bytes=0)
        self._trace: Trace | None = None
        self._is_stopped = False

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
        """See `Sandbox.exec`. Raises ScriptExhausted when the script is at its end."""
        self._check()
        step = self._backend.next_command(command)
        if step.error:
            raise SandboxUnavailable(step.error)
        for path in step.removes:
            self.remove_tree(path)
        for file in step.writes:
            self._files[file.path] = file
        self._usage = step.usage or self._usage
        if is_traced:
            self._trace = step.trace or Trace()
        return ExecResult(
            exit_status=step.exit_status,
            stdout=step.stdout[:OUTPUT_CAP_BYTES],
            stderr=step.stderr[:OUTPUT_CAP_BYTES],
            truncated=max(len(step.stdout), len(step.stderr)) > OUTPUT_CAP_BYTES,
            timed_out=step.timed_out,
            seconds=timeout_seconds if step.timed_out else step.seconds,
        )

    def write_files(self, files: Sequence[SandboxFile], at: str) -> None:
        """See `Sandbox.write_files`."""
        self._check()
        for file in files:
            path = "/" + "/".join(part for part in f"{at}/{file.path}".split("/") if part)
            for parent in _parents(path):
                self._files.pop(parent, None)
                self._files.pop(f"{parent}/", None)
            if file.is_folder:
                path += "/"
                if any(known.startswith(path) for known in self._files):
                    continue
            self.remove_tree(path.rstrip("/"))
            self._files[path] = replace(file, path=path)

    def remove_tree(self, path: str) -> None:
        """See `Sandbox.remove_tree`."""
        self._check()
        for known in list(self._files):
            if known == path or known.startswith(f"{path.rstrip('/')}/"):
                del self._files[known]

    def read_files(
        self, sources: Sequence[ArtifactSpec], *, cap_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """See `Sandbox.read_files`."""
        self._check()
        found: dict[str, SandboxFile] = {}
        for source in sources:
            top = source.source.rstrip("/")
            for path, file in self._files.items():
                if file.is_folder and not source.has_folders:
                    continue
                below = path[len(top) + 1 :] if path.startswith(f"{top}/") else ""
                heads = [*_parents(f"/{below}"), f"/{below}"]
                is_left_out = any(is_excluded(head[1:], list(source.exclude)) for head in heads)
                if path.rstrip("/") == top or (below and not is_left_out):
                    found[path] = replace(file, mode=0o777) if file.link is not None else file
        if sum(len(file.data) for file in found.values()) > cap_bytes:
            raise TooLarge("more than the cap would be read")
        return tuple(found[path] for path in sorted(found))

    def kill_all(self) -> None:
        """See `Sandbox.kill_all`."""
        self._check()

    def trace(self) -> Trace | None:
        """See `Sandbox.trace`."""
        self._check()
        return self._trace

    def usage(self) -> Usage:
        """See `Sandbox.usage`."""
        return self._usage

    def stop(self) -> None:
        """See `Sandbox.stop`."""
        if not self._is_stopped:
            self._is_stopped = True
            self._backend.stopped += 1

    def _check(self) -> None:
        if self._is_stopped:
            raise SandboxUnavailable("this sandbox was stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class FakeBackend:
    """Scripted sandboxes. `started` and `stopped` count them."""

    name = "fake"

    def __init__(self, script: Iterable[FakeCommand] = ()) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self._built: set[str] = set()
        self.commands: list[tuple[str, ...]] = []
        self.started = 0
        self.stopped = 0

    def next_command(self, command: Sequence[str]) -> FakeCommand:
        """The next command of the script. Raises ScriptExhausted."""
        words = " ".join(command)
        with self._lock:
            self.commands.append(tuple(command))
            if not self._script:
                raise ScriptExhausted(f"the script has no step for: {words}")
            step = self._script[0]
            if step.expects not in words:
                raise ScriptExhausted(f"the script expects {step.expects!r}, not: {words}")
            return self._script.pop(0)

    def prepare(self, spec: ImageSpec) -> Image:
        """See `Backend.prepare`. Reads the Dockerfile as the others do, and runs nothing."""
        dockerfile = next((file for file in spec.files if file.path == "Dockerfile"), None)
        if dockerfile is None:
            raise ImageBuildFailed("environment/Dockerfile is missing")
        steps = parse_dockerfile(dockerfile.data)
        workdirs = [step.text for step in steps if step.keyword == "WORKDIR"]
        was_cached = spec.digest in self._built
        self._built.add(spec.digest)
        return Image(
            digest=spec.digest,
            backend=self.name,
            ref=spec.digest,
            workdir=spec.workdir or (workdirs[-1] if workdirs else "/"),
            env=spec.env,
            was_cached=was_cached,
        )

    def start(
        self,
        image: Image,
        limits: Limits,
        network: NetworkPolicy,
        *,
        mounts: Sequence[Mount] = (),
        party: str = "",
        host_name: str = HOST_NAME,
    ) -> FakeSandbox:
        """See `Backend.start`."""
        if network.mode is not NetworkMode.NO_NETWORK:
            raise Refused(f"network_mode = {network.mode.value!r} is not offered by the fake")
        self.started += 1
        return FakeSandbox(self)

    def enforcement(self) -> tuple[str, ...]:
        """See `Backend.enforcement`."""
        return ("nothing is enforced: this back-end is a fake",)

    def close(self) -> None:
        """See `Backend.close`."""


class FakeRunner:
    """Whole trials from a script: results in order, or a function of the trial."""

    def __init__(self, results: Iterable[TrialResult] | Callable[[TrialSpec], TrialResult]) -> None:
        self._function = results if callable(results) else None
        self._results = [] if callable(results) else list(results)
        self._lock = threading.Lock()
        self.specs: list[TrialSpec] = []

    def run(self, spec: TrialSpec) -> TrialResult:
        """See `TrialRunner.run`. Raises ScriptExhausted when the script is at its end."""
        with self._lock:
            self.specs.append(spec)
            if self._function is not None:
                return self._function(spec)
            if not self._results:
                raise ScriptExhausted(f"the script has no result for a trial of {spec.solver.name}")
            return self._results.pop(0)

    def prepare(self, spec: ImageSpec) -> Image:
        """See `TrialRunner.prepare`."""
        return FakeBackend().prepare(spec)


def _parents(path: str) -> list[str]:
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts))]
