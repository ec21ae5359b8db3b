"""Follows what a command starts and opens, by seccomp user notification.

A notification is never a decision: every call goes on (flag CONTINUE), so a path that changes
between the look and the call misleads only the trace.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from typing import TYPE_CHECKING

from sandbox.warden import kernel, overlay, seccomp
from sandbox.warden.wire import Header

if TYPE_CHECKING:
    from sandbox.warden.box import Box

_NOTIF = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECV, _SEND, _ID_VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE = 1
_AT_FDCWD = -100
_MAX_COMMANDS, _MAX_ARGUMENTS, _MAX_ARGUMENT_BYTES, _MAX_FILES = 500, 64, 200, 20_000
_LEFT_OUT = (
    *("/usr/", "/lib", "/proc/", "/dev/", "/sys/", "/etc/ld", "/bin/", "/sbin/"),
    *("/solution/", "/tests/", "/logs/"),
)
_WRITE_ONLY, _CREATE_ANEW = os.O_WRONLY, os.O_TRUNC

_EXECVE, _EXECVEAT, _OPEN, _OPENAT, _OPENAT2 = map(
    seccomp.number_of, ("execve", "execveat", "open", "openat", "openat2")
)


def is_left_out(path: str) -> bool:
    """Whether a path belongs to the system, not to the work."""
    return path.startswith(_LEFT_OUT) and not path.startswith("/usr/local/")


class Tracer:
    """Collects the events of every traced command of one sandbox."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.is_used = False
        self.is_deaf = False
        self.read: set[str] = set()
        self.programs: dict[str, None] = {}
        self.commands: list[list[str]] = []
        self.lost = 0
        self.first_pid = -1
        self.first_words: list[str] = []

    def begin(self, pid: int, argv: list[str], *, is_heard: bool) -> None:
        """A traced command was forked; without a listener, only its files can be told."""
        self.is_used = True
        self.is_deaf |= not is_heard
        self.first_pid = pid
        self.first_words = [word[:_MAX_ARGUMENT_BYTES] for word in argv[:_MAX_ARGUMENTS]]

    def serve(self, listener: int) -> None:
        """Take one notification, note it, and let the call go on."""
        buffer = bytearray(_NOTIF.size)
        try:
            fcntl.ioctl(listener, _RECV, buffer, True)
        except OSError:
            return  # the caller was killed meanwhile
        ident, pid, _flags, number, _arch, _ip, *arguments = _NOTIF.unpack(buffer)
        try:
            self._note(pid, number, arguments)
        except (OSError, ValueError) as error:
            # The command's own start comes from the forked warden, whose memory is closed to us.
            if number != _EXECVE or pid != self.first_pid or error.args[:1] != (errno.EPERM,):
                self.lost += 1
        answer = bytearray(_ANSWER.pack(ident, 0, 0, _CONTINUE))
        try:
            fcntl.ioctl(listener, _SEND, answer, True)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise

    def _note(self, pid: int, number: int, arguments: list[int]) -> None:
        if number == _EXECVE:
            self._note_program(pid, _AT_FDCWD, arguments[0], arguments[1])
        elif number == _EXECVEAT:
            self._note_program(pid, arguments[0], arguments[1], arguments[2])
        elif number == _OPEN:
            self._note_open(pid, _AT_FDCWD, arguments[0], arguments[1])
        elif number == _OPENAT:
            self._note_open(pid, arguments[0], arguments[1], arguments[2])
        elif number == _OPENAT2:
            flags = struct.unpack("=Q", kernel.read_memory(pid, arguments[2], 8))[0]
            self._note_open(pid, arguments[0], arguments[1], flags)

    def _path(self, pid: int, folder: int, address: int) -> str:
        path = os.fsdecode(kernel.read_text(pid, address))
        if path.startswith("/"):
            return os.path.normpath(path)
        folder = folder & 0xFFFFFFFF
        if folder >= 1 << 31:
            folder -= 1 << 32
        name = "cwd" if folder == _AT_FDCWD else f"fd/{folder}"
        # Links of a process in its own root: the host's /proc, opened before we went inside.
        base = os.readlink(f"{pid}/{name}", dir_fd=self.box.host_proc_fd)
        return os.path.normpath(os.path.join(base, path)) if path else base

    def _note_program(self, pid: int, folder: int, address: int, vector: int) -> None:
        path = self._path(pid, folder, address)
        if not os.access(path, os.X_OK) or not os.path.isfile(path):
            return  # one of the PATH look-ups that find nothing
        words = self._vector(pid, vector)
        if pid == self.first_pid and words == self.first_words:
            return  # the caller's own command is no finding
        self.programs.setdefault(os.path.basename(path))
        if len(self.commands) < _MAX_COMMANDS:
            self.commands.append(words)

    def _vector(self, pid: int, address: int) -> list[str]:
        words: list[str] = []
        while address and len(words) < _MAX_ARGUMENTS:
            pointer = struct.unpack("=Q", kernel.read_memory(pid, address, 8))[0]
            if not pointer:
                break
            text = kernel.read_text(pid, pointer, _MAX_ARGUMENT_BYTES * 4)
            words.append(text.decode("utf-8", "replace")[:_MAX_ARGUMENT_BYTES])
            address += 8
        return words

    def _note_open(self, pid: int, folder: int, address: int, flags: int) -> None:
        if flags & os.O_ACCMODE == _WRITE_ONLY or flags & (_CREATE_ANEW | os.O_DIRECTORY):
            return
        path = self._path(pid, folder, address)
        if is_left_out(path) or path in self.read or len(self.read) >= _MAX_FILES:
            return
        try:
            info = os.stat(path)
        except OSError:
            return  # it does not exist: nothing was read
        if stat.S_ISREG(info.st_mode):
            self.read.add(path)

    def report(self) -> Header:
        """What was seen so far, in the words of the contract."""
        written, deleted = overlay.changes(self.box.upper_fd, self.box.lower_fds)
        return {
            "is_used": self.is_used,
            "read": sorted(self.read),
            "programs": list(self.programs),
            "commands": self.commands,
            "written": [path for path in written if not is_left_out(path)],
            "deleted": [path for path in deleted if not is_left_out(path)],
            "lost": self.lost,
            "is_deaf": self.is_deaf,
        }
