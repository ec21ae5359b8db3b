"""The warden's life: one request after another, and an eye on the sandbox in between."""

from __future__ import annotations

import array
import fcntl
import os
import resource
import select
import signal
import socket
import time
from typing import TYPE_CHECKING

from sandbox.warden import files, reading, snapshot, wire
from sandbox.warden.command import Plan, Running, Stream, become
from sandbox.warden.processes import (
    are_all_ended,
    is_first_process_alive,
    reap_one,
    status_of,
)
from sandbox.warden.tracer import Tracer
from sandbox.warden.watch import Watch

if TYPE_CHECKING:
    from sandbox.warden.box import Box

_SAMPLE_SECONDS = 0.02
_FIRST_SAMPLE_SECONDS = 0.005
_IDLE_SAMPLE_MS = 100
_KILL_SECONDS = 10.0
_KILLED = 128 + signal.SIGKILL
_REAP_SECONDS = 0.002
_COMPLAINT_BYTES = 4096


class Gone(Exception):
    """The client let go, its process ended, or the sandbox's first process did."""


class Warden:
    """Serves one sandbox until its client lets go."""

    def __init__(self, sock: socket.socket, limits: wire.Header, box: Box, owner_fd: int) -> None:
        self.sock = sock
        self.limits = limits
        self.box = box
        self.watch = Watch(limits, box)
        self.tracer = Tracer(box)
        self.streams: dict[int, Stream] = {}
        self.listeners: set[int] = set()
        self.ends = {sock.fileno(), owner_fd, box.bwrap_fd}
        self.terminal_pid = -1
        self.poll = select.poll()
        for fd in self.ends:
            self.poll.register(fd, select.POLLIN)

    def run(self) -> None:
        """Serve, then end everything in the sandbox."""
        try:
            while self._serve_one():
                pass
        except Gone:
            pass
        finally:
            self._end()

    def _serve_one(self) -> bool:
        self._wait_for_request()
        try:
            header, payload, _fds = wire.receive(self.sock)
        except (EOFError, OSError):
            return False
        name = header["op"]
        try:
            if name == "stop":
                return False
            answer, data, fds = self._answer(name, header, payload)
        except (OSError, LookupError, ValueError) as error:
            answer, data, fds = {"error": str(error), "kind": _kind(error)}, b"", []
        try:
            wire.send(self.sock, answer, data, fds)
        except OSError:
            return False
        for fd in fds:
            os.close(fd)
        return True

    def _answer(
        self, name: str, header: wire.Header, payload: bytearray
    ) -> tuple[wire.Header, bytes | bytearray, list[int]]:
        if name == "exec":
            answer, data = self._exec(header, bytes(payload))
            return answer, data, []
        if name == "terminal":
            return self._terminal(header)
        if name == "wait_terminal":
            return self._wait_terminal(), b"", []
        if name == "read":
            answer, data = reading.read(header["sources"], header["cap_bytes"])
            return answer, data, []
        if name == "write":
            files.write(header, payload)
        elif name == "remove":
            files.remove(header["path"])
        elif name == "kill":
            self._kill_all()
        elif name == "trace":
            return self.tracer.report(), b"", []
        elif name == "usage":
            return self.watch.usage(), b"", []
        elif name == "store":
            snapshot.store(self.box.upper_fd, self.box.store_fd, header["name"])
        else:
            raise ValueError(f"unknown request {name}")
        return {"ok": True}, b"", []

    # -- waiting ------------------------------------------------------------------------------

    def _wait_for_request(self) -> None:
        while True:
            is_watched = self.terminal_pid >= 0
            for fd, event in self.poll.poll(_IDLE_SAMPLE_MS if is_watched else None):
                if fd == self.sock.fileno():
                    return
                self._handle(fd, event)
            if is_watched:
                self.watch.sample()

    def _handle(self, fd: int, event: int) -> None:
        if fd in self.streams:
            if not self.streams[fd].read():
                self._drop(fd)
        elif fd in self.listeners:
            if event & select.POLLIN:
                self.tracer.serve(fd)
            else:
                self._drop(fd)
        elif fd in self.ends:
            raise Gone

    def _drop(self, fd: int) -> None:
        self.poll.unregister(fd)
        os.close(fd)
        self.streams.pop(fd, None)
        self.listeners.discard(fd)

    # -- commands -----------------------------------------------------------------------------

    def _exec(self, header: wire.Header, stdin: bytes) -> tuple[wire.Header, bytearray]:
        plan = Plan(header, self.limits)
        running = Running(plan, self.box, stdin or None, header["cap_bytes"])
        if plan.is_traced:
            self.tracer.begin(running.pid, header["argv"], is_heard=running.listener >= 0)
        self._register(running)
        timed_out = not self._follow(running, running.started + header["timeout_seconds"])
        if timed_out:
            self._signal_all()
        status, used = self._collect(running)
        if status == _KILLED and not timed_out and not is_first_process_alive():
            raise Gone  # it was not ended by anybody inside, nor by a limit: the sandbox is over
        seconds = time.monotonic() - running.started
        if timed_out:
            self._kill_all()
        out, err = running.stdout, running.stderr
        for stream in (out, err):
            if stream.fd in self.streams:
                stream.read()
                stream.cap_bytes = 0  # services that live on may write; nobody keeps it
        self.watch.ended(used, bytes(err.data[-_COMPLAINT_BYTES:]) if status else b"")
        answer: wire.Header = {
            "status": status,
            "timed_out": timed_out,
            "truncated": out.is_truncated or err.is_truncated,
            "seconds": seconds,
            "stdout": len(out.data),
        }
        data = out.data + err.data
        out.data, err.data = bytearray(), bytearray()
        return answer, data

    def _register(self, running: Running) -> None:
        self.poll.register(running.pidfd, select.POLLIN)
        for stream in (running.stdout, running.stderr):
            self.streams[stream.fd] = stream
            self.poll.register(stream.fd, select.POLLIN)
        if running.stdin_fd >= 0:
            self.poll.register(running.stdin_fd, select.POLLOUT)
        if running.listener >= 0:
            self.listeners.add(running.listener)
            self.poll.register(running.listener, select.POLLIN)

    def _follow(self, running: Running, deadline: float) -> bool:
        """Serve the command's streams and limits until it ends; False when its time is up."""
        next_sample = time.monotonic() + _FIRST_SAMPLE_SECONDS
        while True:
            now = time.monotonic()
            if now >= deadline:
                return False
            if now >= next_sample:
                self.watch.sample()
                spent = time.monotonic() - now
                next_sample = now + max(_SAMPLE_SECONDS, 10 * spent)
            wait = min(deadline, next_sample) - now
            for fd, event in self.poll.poll(max(0.0, wait) * 1000 + 0.5):
                if fd == running.pidfd:
                    return True
                if fd == running.stdin_fd:
                    if not running.feed():
                        self.poll.unregister(fd)
                        os.close(fd)
                        running.stdin_fd = -1
                elif fd == self.sock.fileno() and not event & (select.POLLHUP | select.POLLERR):
                    raise Gone  # the client breaks off: nothing is asked while a command runs
                else:
                    self._handle(fd, event)

    def _collect(self, running: Running) -> tuple[int, resource.struct_rusage]:
        _pid, raw, used = os.wait4(running.pid, 0)
        self.poll.unregister(running.pidfd)
        os.close(running.pidfd)
        if running.stdin_fd >= 0:
            self.poll.unregister(running.stdin_fd)
            os.close(running.stdin_fd)
        return status_of(raw), used

    def _terminal(self, header: wire.Header) -> tuple[wire.Header, bytes, list[int]]:
        """Start a command on a terminal of the sandbox; the client gets its other end."""
        plan = Plan(header, self.limits)
        ours, theirs = os.openpty()
        fcntl.ioctl(ours, 0x5414, array.array("H", [*header["size"], 0, 0]))  # TIOCSWINSZ
        if self.limits["has_ids"]:
            os.fchown(theirs, plan.user.uid, -1)
        pid = os.fork()
        if pid == 0:
            become(plan, self.box, (theirs, theirs, theirs), None)
        os.close(theirs)
        self.terminal_pid = pid
        return {"ok": True}, b"", [ours]

    def _wait_terminal(self) -> wire.Header:
        """The status of the terminal's command; when it lives on without its terminal, it ends."""
        pid, self.terminal_pid = self.terminal_pid, -1
        if pid < 0:
            raise ValueError("there is no terminal")
        fd = os.pidfd_open(pid)
        if not select.select([fd], [], [], 1.0)[0]:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        os.close(fd)
        _pid, raw, used = os.wait4(pid, 0)
        self.watch.ended(used)
        return {"status": status_of(raw)}

    # -- ends ---------------------------------------------------------------------------------

    def _signal_all(self) -> None:
        """End every process but the first: from a child inside, which `kill` spares."""
        pid = os.fork()
        if pid == 0:
            try:
                os.kill(-1, signal.SIGKILL)
            except OSError:
                pass  # nobody was there
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    def _kill_all(self) -> None:
        deadline = time.monotonic() + _KILL_SECONDS
        while True:
            self._signal_all()
            while reap_one():
                pass
            if are_all_ended():
                return
            if time.monotonic() > deadline:
                raise TimeoutError("processes of the sandbox do not end")
            time.sleep(0.001)

    def _end(self) -> None:
        """The end of the first process is the end of them all.

        The kernel lets it end only when our own children inside have been waited for.
        """
        os.close(self.box.keeper_fd)
        deadline = time.monotonic() + _KILL_SECONDS
        while not select.select([self.box.bwrap_fd], [], [], _REAP_SECONDS)[0]:
            while reap_one():
                pass
            if time.monotonic() > deadline:
                break


def _kind(error: Exception) -> str:
    if isinstance(error, reading.TooDeep):
        return "too_deep"
    if isinstance(error, reading.TooMuch):
        return "too_much"
    return "refused" if isinstance(error, LookupError | ValueError) else "broken"
