"""The fork server: one per back-end instance; forks a warden for each sandbox in milliseconds.

Started as `python -I -S -X utf8 -c … <marker> <descriptor>`. It ends when its owner ends, and lets
running wardens go on until their own owners let go of them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys

from sandbox.warden import box, cgroups, ids, kernel, stage, wire

CLONE_NEWNS = 0x00020000


class Server:
    """Takes start requests from the back-end and answers for the wardens' ends."""

    def __init__(self, control: socket.socket, config: wire.Header, owner_fd: int) -> None:
        self.control = control
        self.config = config
        self.owner_fd = owner_fd
        self.cgroups = cgroups.Cgroups(config["cgroup_prefix"])
        self.wardens: dict[int, tuple[int, list[str]]] = {}
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)
        self.poll.register(owner_fd, select.POLLIN)

    def run(self) -> None:
        """Serve until the owner ends or closes the control socket, and no warden is left."""
        is_open = True
        while is_open or self.wardens:
            for fd, _event in self.poll.poll():
                if fd in self.wardens:
                    self._reap(fd)
                elif is_open and fd == self.control.fileno():
                    is_open = self._serve()
                elif fd == self.owner_fd:
                    is_open = False
                if not is_open:
                    self._unregister()

    def _unregister(self) -> None:
        for fd in (self.control.fileno(), self.owner_fd):
            try:
                self.poll.unregister(fd)
            except (KeyError, ValueError):
                continue

    def _serve(self) -> bool:
        try:
            header, _payload, descriptors = wire.receive(self.control)
        except (EOFError, OSError):
            return False
        sock = socket.socket(fileno=descriptors[0])
        try:
            self._start(header, sock)
        except OSError as error:
            _answer(sock, error)
        finally:
            sock.close()
        return True

    def _start(self, request: wire.Header, sock: socket.socket) -> None:
        if self.config["id_base"]:  # others mount in their own user namespace
            request["mounts"] = [[stage.mount_source(s), at] for s, at in request["mounts"]]
        groups = self.cgroups.create(request)
        theirs, ours = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self.control.close()
            status = 1
            try:
                held = box.Held(groups, self.owner_fd)
                status = box.main(self.config, request, sock, theirs, held)
            finally:
                os._exit(status)
        theirs.close()
        fd = os.pidfd_open(pid)
        self.wardens[fd] = (pid, groups.paths)
        self.poll.register(fd, select.POLLIN)
        groups.close()
        if ours.recv(1) == b"u":  # it has its own user namespace and waits for its ids
            ours.send(b"m" if ids.write_maps(pid, self.config) else b"x")
        ours.close()

    def _reap(self, fd: int) -> None:
        pid, paths = self.wardens.pop(fd)
        self.poll.unregister(fd)
        os.close(fd)
        os.waitpid(pid, 0)
        cgroups.remove(paths)


def _forget_signals() -> None:
    """What our owner ignores or blocks (a job of a shell ignores SIGQUIT) is not for commands."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _answer(sock: socket.socket, error: OSError) -> None:
    with contextlib.suppress(OSError):  # it may be that nobody waits for the answer any more
        wire.send(sock, {"error": f"{error.strerror or error}", "step": "starting a warden"})


def main() -> None:
    """Entry point of the server process; the last argument is the control descriptor."""
    owner = os.getppid()
    control = socket.socket(fileno=int(sys.argv[-1]))
    config, _payload, _fds = wire.receive(control)
    owner_fd = os.pidfd_open(owner)
    if owner != config["owner_pid"]:
        return
    os.chdir("/")
    os.umask(0o022)
    _forget_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kernel.set_process_name(b"ratchet-server")
    if config["id_base"]:
        os.unshare(CLONE_NEWNS)
        stage.prepare(config)
    os.setsid()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # deep folders are read by descriptor
    gc.collect()
    gc.freeze()  # what is shared after a fork should stay shared
    gc.disable()
    wire.send(control, {"ok": True})
    Server(control, config, owner_fd).run()
