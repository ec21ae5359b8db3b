"""One command in the sandbox: the fork, what the child gives up, and its streams."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal
import socket
import termios
import time
from typing import TYPE_CHECKING

from sandbox.warden import kernel, seccomp
from sandbox.warden.wire import Header

if TYPE_CHECKING:
    from sandbox.warden.box import Box

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DENY = seccomp.deny_program()
_DENY_PINNED = seccomp.deny_program(is_pinned=True)
FIRST_PROCESS_FILTER = bytes(_DENY)
_TRACE = seccomp.trace_program()
_PIPE_BYTES = 1 << 20
_MAX_TABLE_BYTES = 1 << 20


class User:
    """Whom a command runs as."""

    def __init__(self, uid: int, gid: int, groups: list[int], home: str) -> None:
        self.uid = uid
        self.gid = gid
        self.groups = groups
        self.home = home


def _table(path: str) -> list[list[str]]:
    """The rows of a passwd-like file of the sandbox, whatever is in it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        text = os.read(fd, _MAX_TABLE_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    finally:
        os.close(fd)
    return [line.split(":") for line in text.splitlines()]


def find_user(name: str | None) -> User:
    """Look a user up inside the sandbox: `name`, `uid`, `name:group`, `uid:gid`.

    Raises LookupError when there is none.
    """
    wanted, _colon, wanted_group = (name or "0").partition(":")
    rows = [row for row in _table("/etc/passwd") if len(row) >= 7 and (row[2] + row[3]).isdecimal()]
    row = next((row for row in rows if wanted in (row[0], row[2])), None)
    if row is None and not wanted.isdecimal():
        raise LookupError(f"there is no user {wanted!r} in the sandbox")
    uid, gid, home = (int(row[2]), int(row[3]), row[5]) if row else (int(wanted), 0, "/")
    groups = [g for g in _table("/etc/group") if len(g) >= 4 and g[2].isdecimal()]
    if wanted_group:
        group = next((g for g in groups if wanted_group in (g[0], g[2])), None)
        if group is None and not wanted_group.isdecimal():
            raise LookupError(f"there is no group {wanted_group!r} in the sandbox")
        return User(uid, int(group[2]) if group else int(wanted_group), [], home or "/")
    extra = [int(g[2]) for g in groups if row and row[0] in g[3].split(",")]
    return User(uid, gid, extra, home or "/")


class Plan:
    """A command made ready before the fork, so that the child only makes system calls."""

    def __init__(self, request: Header, limits: Header) -> None:
        self.user = find_user(request["user"])
        if self.user.uid and not limits["has_ids"]:
            name = request["user"]
            raise LookupError(f"user {name!r}: only root exists here without a range of user ids")
        self.argv = [os.fsencode(part) for part in request["argv"]]
        env = {"PATH": DEFAULT_PATH, "HOME": self.user.home, "HOSTNAME": limits["host_name"]}
        env.update(request["env"])
        self.env = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        self.workdir = request["workdir"]
        self.is_traced = bool(request.get("is_traced"))
        self.limits = limits
        program = request["argv"][0]
        folders = [""] if "/" in program else [f"{d}/" for d in env["PATH"].split(":")]
        self.programs = [os.fsencode(folder + program) for folder in folders]


def set_limits(limits: Header) -> None:
    """Give this process, and all that it starts, the limits of the sandbox."""
    # The kernel counts the warden, bubblewrap and the first process too. Where a group counts the
    # commands' processes exactly, and tells when it is full, the group shall be full first.
    spare = 3 + (16 if limits["is_counted"] else 0)
    pairs = (
        (resource.RLIMIT_NPROC, limits["processes"] + spare),
        (resource.RLIMIT_NOFILE, limits["descriptors"]),
        (resource.RLIMIT_FSIZE, limits["disk_bytes"]),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, value in pairs:
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)  # noqa: PLW2901
        resource.setrlimit(kind, (value, value))
    if limits["cpu_set"]:
        os.sched_setaffinity(0, limits["cpu_set"])


def _give_up_rights(plan: Plan, tracer: socket.socket | None) -> None:
    user = plan.user
    kernel.drop_bounding_set()
    if plan.limits["has_ids"]:
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    mask = sum(1 << capability for capability in kernel.KEPT_CAPABILITIES)
    kernel.capset(mask if user.uid == 0 else 0)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if tracer is not None:
        with contextlib.suppress(OSError):  # then there is no trace, and the tracer says so
            listener = kernel.seccomp(_TRACE, seccomp.LISTENER_FLAG)
            socket.send_fds(tracer, [b"l"], [listener])
            os.close(listener)
        tracer.close()
    kernel.seccomp(_DENY_PINNED if plan.limits["cpu_set"] else _DENY)


def become(
    plan: Plan, box: Box, streams: tuple[int, int, int], tracer: socket.socket | None
) -> None:
    """In the forked child: give everything up and become the command. Never returns."""
    status = 126
    try:
        os.setsid()
        for fd in box.groups.procs:
            os.write(fd, b"0")
        set_limits(plan.limits)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.umask(0o022)
        _give_up_rights(plan, tracer)
        os.chdir(plan.workdir)
        missing: OSError | None = None
        for program in plan.programs:
            try:
                os.execve(program, plan.argv, plan.env)  # noqa: S606
            except OSError as error:
                if missing is None or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    missing = error
        is_absent = missing is None or missing.errno in (errno.ENOENT, errno.ENOTDIR)
        status = 127 if is_absent else 126
        raise missing or FileNotFoundError(errno.ENOENT, "not found")
    except OSError as error:
        text = f"sandbox: cannot run {plan.argv[0]!r} in {plan.workdir}: {error}\n"
        os.write(2, text.encode("utf-8", "replace"))
    finally:
        os._exit(status)


class Stream:
    """One output stream: kept up to the cap, then read and dropped, so that nobody blocks."""

    def __init__(self, fd: int, cap_bytes: int) -> None:
        self.fd = fd
        self.cap_bytes = cap_bytes
        self.data = bytearray()
        self.is_truncated = False
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Take what is there; False when the stream has ended."""
        while True:
            try:
                part = os.read(self.fd, _PIPE_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not part:
                return False
            room = self.cap_bytes - len(self.data)
            self.data += part[:room]
            self.is_truncated |= len(part) > room
            if len(part) < 65_536:
                return True


class Running:
    """A command between its start and its end."""

    def __init__(self, plan: Plan, box: Box, stdin: bytes | None, cap_bytes: int) -> None:
        self.started = time.monotonic()
        self.stdin = memoryview(stdin or b"")
        self.stdin_fd = -1
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        in_read = os.open("/dev/null", os.O_RDONLY)
        if stdin:
            os.close(in_read)
            in_read, self.stdin_fd = os.pipe()
            os.set_blocking(self.stdin_fd, False)
        ours: socket.socket | None = None
        theirs: socket.socket | None = None
        if plan.is_traced:
            ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            become(plan, box, (in_read, out_write, err_write), theirs)
        for fd in (in_read, out_write, err_write):
            os.close(fd)
        self.pidfd = os.pidfd_open(self.pid)
        self.stdout = Stream(out_read, cap_bytes)
        self.stderr = Stream(err_read, cap_bytes)
        self.listener = -1
        if ours is not None and theirs is not None:
            theirs.close()
            _data, fds, _flags, _address = socket.recv_fds(ours, 1, 1)
            self.listener = fds[0] if fds else -1
            ours.close()

    def feed(self) -> bool:
        """Write what standard input takes; False when all is written or nobody reads."""
        try:
            done = os.write(self.stdin_fd, self.stdin[:65_536])
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.stdin = self.stdin[done:]
        return bool(self.stdin)
