"""The back-end's side of one running bubblewrap sandbox."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from sandbox.contracts import (
    OUTPUT_CAP_BYTES,
    ArtifactSpec,
    ExecResult,
    Image,
    SandboxFile,
    Trace,
    Usage,
)
from sandbox.errors import Refused, SandboxUnavailable, TooDeep, TooLarge
from sandbox.warden import wire

_GRACE_SECONDS = 60.0


class BubblewrapSandbox:
    """A running sandbox; made by `BubblewrapBackend.start`."""

    def __init__(
        self,
        sock: socket.socket,
        image: Image,
        release: Callable[[], None],
        notes: tuple[str, ...],
    ) -> None:
        self.image = image
        self.notes = notes
        self.waited_seconds = 0.0
        self._sock: socket.socket | None = sock
        self._release = release
        self._lock = threading.Lock()
        self._asking = threading.Lock()
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

    def open_terminal(self, command: Sequence[str], rows: int, columns: int) -> int:
        """See `HasTerminal.open_terminal`."""
        request = self._command(command, None, (("TERM", os.environ.get("TERM", "xterm")),), None)
        request |= {"op": "terminal", "size": [rows, columns]}
        _answer, _data, fds = self._ask(request)
        return fds[0]

    def wait_terminal(self) -> int:
        """See `HasTerminal.wait_terminal`."""
        answer, _data, _fds = self._ask({"op": "wait_terminal"})
        return int(answer["status"])

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
        wanted = [
            {"source": s.source, "exclude": list(s.exclude), "folders": s.has_folders}
            for s in sources
        ]
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
        lost, is_deaf = answer["lost"], answer["is_deaf"]
        note = f"{lost} calls could not be read" if lost else ""
        if is_deaf:
            note = "programs and opened files could not be followed on this machine"
        return Trace(
            read=tuple(answer["read"]),
            written=tuple(answer["written"]),
            deleted=tuple(answer["deleted"]),
            programs=tuple(answer["programs"]),
            commands=tuple(tuple(words) for words in answer["commands"]),
            is_complete=not lost and not is_deaf,
            note=note,
        )

    def usage(self) -> Usage:
        """See `Sandbox.usage`; after the end, what was known last."""
        if self._sock is not None:
            answer, _data, _fds = self._ask({"op": "usage"})
            self._last_usage = Usage(**{**answer, "struck": tuple(answer["struck"])})
        return self._last_usage

    def tell_host_name(self, name: str) -> None:
        """Have the files of `/etc` say this name, as a container engine's do."""
        hosts = f"127.0.0.1\tlocalhost {name}\n::1\tlocalhost\n"
        files = (
            SandboxFile("hostname", f"{name}\n".encode()),
            SandboxFile("hosts", hosts.encode()),
        )
        try:
            self.write_files(files, "/etc")
        except BaseException:
            self.stop()
            raise

    def store_layer(self, name: str) -> None:
        """Copy the writable layer into the cache's incoming folder (sandboxes of builds only)."""
        self._ask({"op": "store", "name": name})

    def stop(self) -> None:
        """See `Sandbox.stop`. Returns when the sandbox's processes are gone."""
        with self._lock:
            sock, self._sock = self._sock, None
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
                self._release()

    def _ask(
        self, request: dict[str, Any], payload: bytes = b"", seconds: float = _GRACE_SECONDS
    ) -> tuple[dict[str, Any], bytearray, list[int]]:
        sock = self._sock
        if sock is None:
            raise SandboxUnavailable("this sandbox was stopped")
        try:
            with self._asking:
                sock.settimeout(seconds)
                wire.send(sock, request, payload)
                answer, data, fds = wire.receive(sock)
        except (OSError, EOFError) as error:
            self.stop()
            raise SandboxUnavailable(
                f"the sandbox ended during {request['op']}: {error}"
            ) from error
        if "error" in answer:
            if answer["kind"] == "too_deep":
                raise TooDeep(answer["error"])
            if answer["kind"] == "too_much":
                raise TooLarge(answer["error"])
            if answer["kind"] == "refused":
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
