"""The back-end's side of the fork server: starts it, asks it for wardens, ends it."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

from sandbox.errors import SandboxUnavailable
from sandbox.findings import remedy_for
from sandbox.reaper import SERVER_MARKER, group_prefix, owner_label
from sandbox.warden import wire

_START_SECONDS = 30.0
_DYING_SECONDS = 0.5
_ATTEMPTS = 3
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from sandbox.warden.server import main; main()"
)
_NUMBERS = itertools.count(1)
"""Of sandboxes: no two of this process share one, for control groups are named after it."""
_SOURCE = str(Path(__file__).resolve().parents[2])


class NotStarted(SandboxUnavailable):
    """A sandbox that did not start; `step` is where it failed."""

    def __init__(self, step: str, reason: str) -> None:
        remedy = remedy_for(step)
        text = f"a sandbox did not start: {step}: {reason}"
        super().__init__(f"{text}; {remedy}" if remedy else text)
        self.step = step


class _ServerEnded(SandboxUnavailable):
    """The server that was asked is gone."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the sandbox server ended: {error}")


class ServerProcess:
    """One fork server of this process; a new one is started when it died or when we forked."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        forget = weakref.WeakMethod(self._forget)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def _forget(self) -> None:
        self._lock = threading.Lock()

    def start_warden(self, request: dict[str, Any]) -> tuple[socket.socket, dict[str, Any]]:
        """A socket to a fresh warden, and its answer. Raises SandboxUnavailable.

        A server that died is noticed only by its silence: a request may still have gone into the
        queue of a dying one. A warden that lost its other side ends by itself, so asking anew is
        safe.
        """
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(_ServerEnded):
                return self._answered(self._asked(request))
        return self._answered(self._asked(request))

    def _asked(self, request: dict[str, Any]) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            with self._lock:
                control = self._ensure()
                try:
                    named = {**request, "id": f"{next(_NUMBERS)}"}
                    wire.send(control, named, descriptors=[theirs.fileno()])
                except OSError as error:
                    self._discard()
                    raise _ServerEnded(error) from error
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    def _answered(self, ours: socket.socket) -> tuple[socket.socket, dict[str, Any]]:
        ours.settimeout(_START_SECONDS)
        try:
            answer, _payload, _fds = wire.receive(ours)
        except (EOFError, ConnectionError) as error:
            ours.close()
            self._discard_if_ended()
            raise _ServerEnded(error) from error
        except OSError as error:
            ours.close()
            raise SandboxUnavailable(f"a sandbox did not start: {error}") from error
        if "error" in answer:
            ours.close()
            raise NotStarted(answer["step"], answer["error"])
        return ours, answer

    def _discard_if_ended(self) -> None:
        """Another thread may have replaced the server that was asked: a living one stays."""
        with self._lock:
            process = self._process
            if process is None or self._pid != os.getpid():
                return
            with contextlib.suppress(subprocess.TimeoutExpired):  # killed, and not yet gone
                process.wait(timeout=_DYING_SECONDS)
                self._discard()

    def _ensure(self) -> socket.socket:
        if self._control is not None and self._pid == os.getpid():
            return self._control
        self._discard()
        ours, theirs = socket.socketpair()
        label = owner_label(os.getpid())
        arguments = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, _SOURCE]
        arguments += [f"{SERVER_MARKER}{label}", str(theirs.fileno())]
        self._process = subprocess.Popen(
            arguments,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
        )
        theirs.close()
        ours.settimeout(_START_SECONDS)
        config = {**self._config, "owner_pid": os.getpid(), "cgroup_prefix": group_prefix(label)}
        try:
            wire.send(ours, config)
            wire.receive(ours)
        except (OSError, EOFError) as error:
            ours.close()
            raise SandboxUnavailable(f"the sandbox server did not start: {self._why()}") from error
        ours.settimeout(None)
        self._control, self._pid = ours, os.getpid()
        return ours

    def _why(self) -> str:
        process = self._process
        if process is None or process.stderr is None:
            return "unknown"
        process.kill()
        lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        process.wait()
        return lines[-1] if lines else "it ended without a word"

    def _discard(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None and self._pid == os.getpid():
            if self._process.stderr is not None:
                self._process.stderr.close()
            with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for its wardens
                self._process.wait(timeout=5)
        self._control = self._process = None

    def close(self) -> None:
        """End the server; running sandboxes go on until they are stopped."""
        with self._lock:
            self._discard()
