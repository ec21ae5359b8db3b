"""Enters a new sandbox: user namespace, own root file system, bubblewrap, and then its inside."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket

from sandbox.warden import kernel, stage, wire
from sandbox.warden.cgroups import Groups
from sandbox.warden.command import FIRST_PROCESS_FILTER, set_limits
from sandbox.warden.files import FOLDER
from sandbox.warden.loop import Warden

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x08000000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000
_INSIDE = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

# The first process holds a capability that commands never have, and that means nothing in a user
# namespace: so none of them may trace it or write to its memory.
_SHIELD = "CAP_WAKE_ALARM"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Failed(Exception):
    """A step of entering that did not work."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason


class Box:
    """What the warden keeps of the sandbox it entered."""

    def __init__(self) -> None:
        self.upper_fd = -1
        self.lower_fds: list[int] = []
        self.store_fd = -1
        self.host_proc_fd = -1
        self.keeper_fd = -1
        self.bwrap_pid = -1
        self.bwrap_fd = -1
        self.groups = Groups()


class Held:
    """What the server opened while it still could."""

    def __init__(self, groups: Groups, owner_fd: int) -> None:
        self.groups = groups
        self.owner_fd = owner_fd


def main(
    config: wire.Header,
    request: wire.Header,
    sock: socket.socket,
    server: socket.socket,
    held: Held,
) -> int:
    """Become the warden of one sandbox; returns the exit status of the process."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    box = Box()
    box.groups = held.groups
    request["is_counted"] = bool(held.groups.pids)
    try:
        kernel.set_process_name(b"ratchet-warden")
        _enter_user_namespace(config, request, server)
        _build_root(config, request, box)
        _start_bwrap(config, request, box)
    except Failed as failure:
        _report(sock, failure.step, failure.reason)
        return 1
    except OSError as error:
        _report(sock, "setting the sandbox up", error.strerror or str(error))
        return 1
    wire.send(sock, {"ok": True, "pid": os.getpid()})
    Warden(sock, request, box, held.owner_fd).run()
    return 0


def _report(sock: socket.socket, step: str, reason: str) -> None:
    with contextlib.suppress(OSError):  # it may be that nobody waits for the answer any more
        wire.send(sock, {"error": reason, "step": step})


def _enter_user_namespace(config: wire.Header, request: wire.Header, server: socket.socket) -> None:
    base = config["id_base"]
    uid, gid = os.geteuid(), os.getegid()
    if base:  # never as kuid 0: /proc/sys would be writable inside
        os.setgroups([])
        os.setresgid(base, base, base)
        os.setresuid(base, base, base)
    try:
        os.unshare(CLONE_NEWUSER | CLONE_NEWNS)
    except OSError as error:
        raise Failed("user namespace", error.strerror or str(error)) from None
    if base or config["id_count"] > 1:
        server.send(b"u")
        if server.recv(1) != b"m":
            raise Failed("user namespace", "the ids could not be mapped")
    else:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1\n")
        _write("/proc/self/gid_map", f"0 {gid} 1\n")
    server.close()
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    if base:
        os.setgroups([])
    else:
        stage.prepare(config)
        request["mounts"] = [[stage.mount_source(s), at] for s, at in request["mounts"]]


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _build_root(config: wire.Header, request: wire.Header, box: Box) -> None:
    at = stage.place()
    inner = f"{at}/box"
    # A bomb of empty files must not eat the machine's memory either.
    inodes = max(16_384, request["disk_bytes"] // 4096)
    options = f"size={request['disk_bytes']},nr_inodes={inodes},mode=755"
    kernel.mount("sandbox", inner, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for name in ("upper", "work", "root"):
        os.mkdir(f"{inner}/{name}", 0o755)
    lower = ":".join(f"{at}/cache/{layer}" for layer in request["layers"])
    options = f"lowerdir={lower},upperdir={inner}/upper,workdir={inner}/work,userxattr"
    try:
        kernel.mount("sandbox", f"{inner}/root", "overlay", kernel.MS_NODEV, options)
    except OSError as error:
        raise Failed("overlay file system", error.strerror or str(error)) from None
    box.upper_fd = os.open(f"{inner}/upper", os.O_RDONLY | os.O_DIRECTORY)
    for layer in request["layers"]:  # the top one first, as the overlay has them
        box.lower_fds.append(os.open(f"{at}/cache/{layer}", os.O_RDONLY | os.O_DIRECTORY))
    box.host_proc_fd = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    if request["store"]:
        box.store_fd = os.open(f"{at}/cache/{request['store']}", os.O_RDONLY | os.O_DIRECTORY)
    for _source, target in request["mounts"]:
        _make_folder(f"{inner}/root", target)


def _make_folder(root: str, path: str) -> None:
    """Make a mount point, following no link of the image: bubblewrap would follow it anywhere."""
    current = os.open(root, FOLDER)
    for part in path.strip("/").split("/"):
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=current)
            below = os.open(part, FOLDER, dir_fd=current)
        except OSError:
            raise Failed(f"mounting at {path}", f"{part!r} is no folder of the image") from None
        finally:
            os.close(current)
        current = below
    os.close(current)


def _arguments(
    config: wire.Header, request: wire.Header, shell: str, info_fd: int, filter_fd: int
) -> list[str]:
    at = stage.place()
    shm = min(64 * 1024 * 1024, request["disk_bytes"])
    arguments = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--hostname", request["host_name"], "--cap-drop", "ALL"]
    arguments += ["--cap-add", _SHIELD, "--seccomp", str(filter_fd)]
    arguments += ["--bind", f"{at}/box/root", "/"]
    for path in config["host_folders"]:
        arguments += ["--ro-bind", path, path]
    if config["host_folders"]:
        arguments += ["--bind", f"{at}/box/root/usr/local", "/usr/local"]
    if config["stage"].get("python"):
        arguments += ["--ro-bind", f"{at}/python", config["python_at"]]
    for source, target in request["mounts"]:
        arguments += ["--ro-bind", f"{at}/{source}", target]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777"]
    arguments += ["--size", str(shm), "--tmpfs", "/dev/shm"]  # noqa: S108
    arguments += ["--remount-ro", "/dev"]
    arguments += ["--as-pid-1", "--info-fd", str(info_fd), "--chdir", "/", "--"]
    return [*arguments, shell, "-c", "echo; read -r _"]


def _start_bwrap(config: wire.Header, request: wire.Header, box: Box) -> None:
    """Start the first process; in an image without bash, whatever shell it has."""
    try:
        _start_with(config, request, box, "/bin/bash")
    except Failed:
        if config["host_folders"]:
            raise
        os.waitpid(box.bwrap_pid, 0)
        os.close(box.bwrap_fd)
        os.close(box.keeper_fd)
        try:
            _start_with(config, request, box, "/bin/sh")
        except Failed as failure:
            if "execvp /bin/sh" in failure.reason:
                raise Failed("the first process", "the image has no /bin/sh") from None
            raise


def _start_with(config: wire.Header, request: wire.Header, box: Box, shell: str) -> None:
    info_read, info_write = os.pipe()
    ready_read, ready_write = os.pipe()
    keeper_read, box.keeper_fd = os.pipe()
    error_read, error_write = os.pipe()
    os.set_inheritable(info_write, True)
    box.bwrap_pid = os.fork()
    if box.bwrap_pid == 0:
        try:
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()
            for fd in box.groups.procs:
                os.write(fd, b"0")
            set_limits(request)
            for source, target in ((keeper_read, 0), (ready_write, 1), (error_write, 2)):
                os.dup2(source, target)
            program = config["bwrap"].replace("@stage", stage.place(), 1)
            filter_fd = os.memfd_create("filter", 0)
            os.write(filter_fd, FIRST_PROCESS_FILTER)
            os.lseek(filter_fd, 0, os.SEEK_SET)
            arguments = _arguments(config, request, shell, info_write, filter_fd)
            os.execve(program, arguments, {"PATH": _PATH})  # noqa: S606
        finally:
            os._exit(127)
    for fd in (info_write, ready_write, keeper_read, error_write):
        os.close(fd)
    box.bwrap_fd = os.pidfd_open(box.bwrap_pid)
    info = b""
    while part := os.read(info_read, 4096):
        info += part
    if not info or os.read(ready_read, 1) != b"\n":
        reason = os.read(error_read, 4096).decode("utf-8", "replace").strip().replace("\n", "; ")
        raise Failed("bubblewrap", reason or "it ended without a word")
    for fd in (info_read, ready_read, error_read):
        os.close(fd)
    first = os.pidfd_open(json.loads(info)["child-pid"])
    os.setns(first, _INSIDE)
    os.close(first)
    os.chdir("/")
