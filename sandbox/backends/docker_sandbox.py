"""The back-end's side of one running container."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from sandbox.backends import docker_archive
from sandbox.backends.docker_engine import Container, one_line
from sandbox.backends.docker_stream import Answer, DriverStream, StreamLost, line_of, quoted
from sandbox.backends.docker_tar import (
    Collection,
    TarReader,
    folders_of,
    plain_parts,
    write_tar,
)
from sandbox.backends.docker_usage import FILES, Counters, read_counters
from sandbox.contracts import (
    OUTPUT_CAP_BYTES,
    ArtifactSpec,
    ExecResult,
    Image,
    SandboxFile,
    Trace,
    Usage,
)
from sandbox.errors import Refused, SandboxUnavailable
from sandbox.limits import EffectiveLimits

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DRIVER_PROCESSES = 6
"""Processes of our own in a container, at most, beside those of the work."""

_NOT_FOUND = 127
_IDLE_PROCESSES = 4  # while a command of root runs
_TOO_MANY_OPEN = b"Too many open files"  # EMFILE, as the C library says it
_COMPLAINT_BYTES = 4096

_FILES_SECONDS = 120.0
_KILL_SECONDS = 30.0
_ROOT = frozenset(("", "root", "0", "0:0", "root:root"))


class Keeper(Protocol):
    """What a sandbox needs of its back-end."""

    def watch(self, sandbox: DockerSandbox) -> None:
        """Look at the disk of this sandbox while a command runs."""
        ...

    def unwatch(self, sandbox: DockerSandbox) -> None:
        """No command runs any more."""
        ...

    def let_go(self, sandbox: DockerSandbox) -> None:
        """It is over: its container goes, now or as soon as that can be, and its place is free."""
        ...


class DockerSandbox:
    """A running container; made by `DockerBackend.start`."""

    def __init__(
        self,
        keeper: Keeper,
        container: Container,
        stream: DriverStream,
        image: Image,
        limits: EffectiveLimits,
        *,
        driver: Sequence[str],
    ) -> None:
        self.image = image
        self.limits = limits
        self.notes = limits.notes
        self.waited_seconds = 0.0
        self.container = container
        self._keeper = keeper
        self._driver = driver
        self._stream = stream
        self._others: set[DriverStream] = set()
        self._lock = threading.Lock()
        self._is_stopped = False
        self._is_traced = False
        self._is_disk_full = False
        self._has_many_descriptors = False
        self._given_bytes = 0
        self._tools: bool | None = None
        self._last_usage = Usage()

    # -- commands -----------------------------------------------------------------------------

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
        """See `Sandbox.exec`. Raises Refused for a user that the image does not know."""
        name = user if user is not None else self.image.user or ""
        self._is_traced |= is_traced
        source = "/dev/null"
        if stdin:
            source = f"/.ratchet-{secrets.token_hex(8)}"
            self.write_files([SandboxFile(source[1:], stdin)], "/")
        line = f"run {source} {quoted(workdir or self.image.workdir)} exec env -i "
        line += self._environment(env) + line_of(*_words(command))
        started = time.monotonic()
        self._keeper.watch(self)
        try:
            if name in _ROOT:
                answer = self._run(line, timeout_seconds)
            else:
                answer = self._run_as(name, line, timeout_seconds)
        finally:
            self._keeper.unwatch(self)
        if stdin and name not in _ROOT:
            self.remove_tree(source)
        if answer.status:
            self._has_many_descriptors |= _TOO_MANY_OPEN in answer.stderr[-_COMPLAINT_BYTES:]
        return ExecResult(
            exit_status=answer.status,
            stdout=answer.stdout,
            stderr=answer.stderr,
            truncated=answer.is_truncated,
            timed_out=answer.is_late,
            seconds=time.monotonic() - started,
        )

    def _run(self, line: str, seconds: float) -> Answer:
        return self._ask(line, seconds, cap_bytes=OUTPUT_CAP_BYTES, at_deadline=self._sweep)

    def _run_as(self, user: str, line: str, seconds: float) -> Answer:
        """Run a command through a second driver, which the engine starts as another user."""
        stream = self._second_driver(user)
        try:
            answer = stream.ask(
                line, seconds=seconds, cap_bytes=OUTPUT_CAP_BYTES, at_deadline=self._sweep
            )
            stream.interrupt("begin 0; leave")
        except StreamLost as lost:
            # The command took its driver along, or we ended both, or all is gone.
            self._ask("say 0", _KILL_SECONDS)
            answer = lost.answer
        finally:
            with self._lock:
                self._others.discard(stream)
            stream.close()
        return answer

    def _second_driver(self, user: str) -> DriverStream:
        self._check_running()
        stream = self.container.open_driver(self._driver, user)
        with self._lock:
            self._others.add(stream)
        try:
            stream.ask("say 0", seconds=_KILL_SECONDS)
        except StreamLost as lost:
            stream.close()
            self._check_running()
            words = stream.first_words
            if "unable to find" in words or "no matching entries" in words:
                raise Refused(f"the image knows no user {user!r}") from lost
            reason = one_line(words) or self.container.why_ended()
            raise SandboxUnavailable(f"no command can be run as {user!r}: {reason}") from lost
        return stream

    def _environment(self, extra: Sequence[tuple[str, str]]) -> str:
        """NAME=value words for `env`; what the image does not say is the driver's own."""
        values = {"PATH": DEFAULT_PATH} | dict(self.image.env) | dict(extra)
        words = [quoted(f"{name}={value}") for name, value in values.items()]
        words += [f'{name}="${name}"' for name in ("HOME", "HOSTNAME") if name not in values]
        return " ".join(words) + " "

    def _check_running(self) -> None:
        if self._is_stopped:
            raise SandboxUnavailable("this sandbox was stopped")

    def _ask(
        self,
        line: str,
        seconds: float,
        *,
        cap_bytes: int = 1 << 20,
        payload: Sequence[bytes] = (),
        sink: Callable[[bytes], None] | None = None,
        at_deadline: Callable[[], None] | None = None,
    ) -> Answer:
        """Have the root driver do something."""
        self._check_running()
        try:
            return self._stream.ask(
                line,
                seconds=seconds,
                payload=payload,
                cap_bytes=cap_bytes,
                sink=sink,
                at_deadline=at_deadline,
            )
        except StreamLost as lost:
            self._check_running()
            reason = self.container.why_ended()
            raise SandboxUnavailable(f"{lost}: {reason}") from lost

    def _sweep(self) -> None:
        self._stream.interrupt("sweep")

    # -- files --------------------------------------------------------------------------------

    def write_files(self, files: Sequence[SandboxFile], at: str) -> None:
        """See `Sandbox.write_files`."""
        folders = folders_of(files, at)
        archive = write_tar(files, at) if files else b""
        if not files:
            status = self._ask(f"still folders {line_of(*folders)}; say $?", _FILES_SECONDS).status
        elif self._has_tools():
            line = f"still unpack {len(archive)} {line_of(*folders)}; say $?"
            status = self._ask(line, _FILES_SECONDS, payload=[archive]).status
        else:
            status = _NOT_FOUND
        if status:
            self._put_by_engine(files, at, folders)
        self._given_bytes += sum(len(file.data) for file in files)

    def _has_tools(self) -> bool:
        """Whether the image can unpack an archive by itself."""
        if self._tools is None:
            self._tools = self._ask("tools; say $?", _KILL_SECONDS).status == 0
        return self._tools

    def _put_by_engine(self, files: Sequence[SandboxFile], at: str, folders: Sequence[str]) -> None:
        """For images without the tools, or whose tools were spoiled."""
        answer = self._ask(f"missing {line_of(*folders)}; say 0", _FILES_SECONDS)
        missing = [path for path in _paths(answer.stdout) if path in folders]
        archive = write_tar(files, at, missing)
        docker_archive.put(self.container.engine, self.container.name, archive)

    def remove_tree(self, path: str) -> None:
        """See `Sandbox.remove_tree`."""
        parts = plain_parts(path)
        if not parts:
            raise Refused("the root stays")
        answer = self._ask(f"still drop {quoted('/' + '/'.join(parts))}; say $?", _FILES_SECONDS)
        if answer.status:
            raise SandboxUnavailable(f"{path} could not be removed in the container")

    def read_files(
        self, sources: Sequence[ArtifactSpec], *, cap_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """See `Sandbox.read_files`."""
        paths = ["/" + "/".join(plain_parts(source.source)) for source in sources]
        found = Collection(sources, cap_bytes)
        reader = TarReader(found)
        line = f"serve pack {line_of(*paths)}"
        answer = self._ask(line, _FILES_SECONDS, sink=reader.feed)
        if reader.is_done or not (reader.is_begun or answer.status):
            return found.files()
        return self._read_by_engine(sources, paths, cap_bytes)

    def _read_by_engine(
        self, sources: Sequence[ArtifactSpec], paths: Sequence[str], cap_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """As `_put_by_engine`."""
        found = Collection(sources, cap_bytes)
        answer = self._ask(f"present {line_of(*paths)}; say 0", _FILES_SECONDS)
        for path in _paths(answer.stdout):
            if path in paths:
                docker_archive.collect(self.container.engine, self.container.name, path, found)
        return found.files()

    def kill_all(self) -> None:
        """See `Sandbox.kill_all`."""
        self._ask("sweep; say 0", _KILL_SECONDS)

    # -- accounts -----------------------------------------------------------------------------

    def trace(self) -> Trace | None:
        """See `Sandbox.trace`: that nothing was followed, and how it can be."""
        if not self._is_traced:
            return None
        note = "Docker cannot follow programs and files; trace under bubblewrap-image"
        return Trace(is_complete=False, note=note)

    def usage(self) -> Usage:
        """See `Sandbox.usage`; after the end, what was known last."""
        if self._is_stopped:
            return self._last_usage
        answer = self._ask(f"report {line_of(*FILES)}; say 0", _KILL_SECONDS)
        self._last_usage = self._usage(read_counters(answer.stdout))
        return self._last_usage

    def _usage(self, counters: Counters) -> Usage:
        disk = self._measure_disk()
        processes = counters.peak_processes
        if processes is not None:
            processes = max(0, processes - _IDLE_PROCESSES)
        if counters.refused_processes:
            processes = max(processes or 0, self.limits.processes)
        looks = {
            "memory": bool(counters.oom_kills),
            "disk": self._is_disk_full,
            "processes": bool(counters.refused_processes),
            "descriptors": self._has_many_descriptors,
        }
        return Usage(
            peak_memory_bytes=counters.peak_memory_bytes,
            cpu_seconds=counters.cpu_seconds,
            peak_processes=processes,
            disk_bytes=disk,
            oom_kills=counters.oom_kills,
            is_disk_full=self._is_disk_full,
            struck=tuple(name for name, has_struck in looks.items() if has_struck),
        )

    def look_at_disk(self) -> bool:
        """End everything when more was written than is allowed; whether it was so."""
        self._measure_disk()
        if self._is_disk_full:
            with contextlib.suppress(StreamLost):  # then its end is near, and says more
                self._sweep()
        return self._is_disk_full

    def _measure_disk(self) -> int:
        """What was written, in bytes. What we put there ourselves counts for nothing."""
        limit = self.limits.disk_bytes + self._given_bytes
        disk = self.container.written_bytes(limit)
        # A file that met its own ceiling, which is the same, is full too.
        self._is_disk_full |= disk >= limit
        return disk

    # -- the end ------------------------------------------------------------------------------

    def stop(self) -> None:
        """See `Sandbox.stop`. What the engine cannot remove now is removed later."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
            streams = [self._stream, *self._others]
        try:
            self._keeper.let_go(self)
        finally:
            for stream in streams:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _words(command: Sequence[str]) -> Sequence[str]:
    if not command or "=" in command[0]:
        raise Refused(f"not the name of a program: {command[:1]!r}")
    return command


def _paths(listing: bytes) -> list[str]:
    """Paths that the driver listed, each ended by a NUL."""
    return listing.decode("utf-8", "surrogateescape").split("\0")[:-1]
