"""Seccomp programs: what nothing in a sandbox may call, and what a traced command reports."""

from __future__ import annotations

import ctypes
import struct

from sandbox.warden.kernel import MACHINE

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LISTENER_FLAG = 8

# name: (x86_64, aarch64); None where the architecture does not have it.
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "setns": (308, 268),
    "unshare": (272, 97),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "kcmp": (312, 272),
    "fanotify_init": (300, 262),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
}
_CLONE, _CLONE3, _IOCTL, _SOCKET = (56, 220), (435, 435), (16, 29), (41, 198)
_SCHED_SETAFFINITY = (203, 122)
_NAMESPACE_FLAGS = 0x7E020080
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# No network namespace holds a virtual machine's own sockets: they would reach its host.
_AF_VSOCK, _AF_ALG = 40, 38

# What a traced command reports.
EXECVE, EXECVEAT, OPEN, OPENAT, OPENAT2 = (59, 221), (322, 281), (2, None), (257, 56), (437, 437)

_ALLOW, _USER_NOTIF, _ERRNO, _KILL = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_LD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06

Program = ctypes.Array[ctypes.c_char]


def number_of(pair: tuple[int | None, int | None]) -> int | None:
    """The number of a call on this machine."""
    return pair[0] if MACHINE == "x86_64" else pair[1]


def _op(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, k)


def _assemble(parts: list[bytes]) -> Program:
    data = b"".join(parts)
    return (ctypes.c_char * len(data)).from_buffer_copy(data)


def _head() -> list[bytes]:
    """Another architecture's numbers mean other calls: they end the process."""
    parts = [
        _op(_LD, 4),
        _op(_JEQ, _AUDIT_ARCH[MACHINE], 1, 0),
        _op(_RET, _KILL),
        _op(_LD, 0),
    ]
    if MACHINE == "x86_64":  # x32
        parts += [_op(_JGE, 0x40000000, 0, 1), _op(_RET, _ERRNO | _ENOSYS)]
    return parts


def deny_program(*, is_pinned: bool = False) -> Program:
    """Refuses what could reach beyond the sandbox; everything else goes through.

    When the sandbox is pinned to its CPUs, choosing others does nothing, and says nothing.
    """
    parts = _head()
    if is_pinned:
        parts += [_op(_JEQ, number_of(_SCHED_SETAFFINITY) or 0, 0, 1), _op(_RET, _ERRNO)]
    for pair in _DENIED.values():
        number = number_of(pair)
        if number is not None:
            parts += [_op(_JEQ, number, 0, 1), _op(_RET, _ERRNO | _EPERM)]
    # clone3 takes its flags from memory, which a filter cannot read: glibc then falls back.
    parts += [_op(_JEQ, number_of(_CLONE3) or 0, 0, 1), _op(_RET, _ERRNO | _ENOSYS)]
    parts += [
        _op(_JEQ, number_of(_CLONE) or 0, 0, 4),
        _op(_LD, 16),
        _op(_JSET, _NAMESPACE_FLAGS & ~0x80, 0, 1),
        _op(_RET, _ERRNO | _EPERM),
        _op(_RET, _ALLOW),
    ]
    parts += [
        _op(_JEQ, number_of(_SOCKET) or 0, 0, 5),
        _op(_LD, 16),
        _op(_JEQ, _AF_VSOCK, 1, 0),
        _op(_JEQ, _AF_ALG, 0, 1),
        _op(_RET, _ERRNO | _EAFNOSUPPORT),
        _op(_RET, _ALLOW),
    ]
    parts += [
        _op(_JEQ, number_of(_IOCTL) or 0, 0, 4),
        _op(_LD, 24),
        _op(_JEQ, _TIOCSTI, 1, 0),
        _op(_JEQ, _TIOCLINUX, 0, 1),
        _op(_RET, _ERRNO | _EPERM),
        _op(_RET, _ALLOW),
    ]
    return _assemble(parts)


def trace_program() -> Program:
    """Reports every start of a program and every opening of a file to the listener."""
    parts = [_op(_LD, 4), _op(_JEQ, _AUDIT_ARCH[MACHINE], 1, 0), _op(_RET, _ALLOW), _op(_LD, 0)]
    for pair in (EXECVE, EXECVEAT, OPEN, OPENAT, OPENAT2):
        number = number_of(pair)
        if number is not None:
            parts += [_op(_JEQ, number, 0, 1), _op(_RET, _USER_NOTIF)]
    parts.append(_op(_RET, _ALLOW))
    return _assemble(parts)
