"""Seccomp programs: what a sandbox may call, and what a traced command reports."""

from __future__ import annotations

import ctypes
import struct

from sandbox.warden import syscalls
from sandbox.warden.kernel import MACHINE

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LISTENER_FLAG = 8

_NAMESPACE_FLAGS = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_ALG, _AF_VSOCK = 38, 40
# Linux, 32 bits' worth of uname, and the question which one it is; not: an address space that is
# not shuffled.
_PERSONALITIES = (0, 0x0008, 0x20000, 0x20008, 0xFFFFFFFF)

_ALLOW, _USER_NOTIF, _ERRNO, _KILL = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38
_LD, _JEQ, _JGT, _JGE, _JSET, _RET = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24

Program = ctypes.Array[ctypes.c_char]


def number_of(name: str, machine: str = MACHINE) -> int | None:
    """The number of a call; None where the architecture does not have it."""
    pair = syscalls.ALLOWED.get(name) or syscalls.JUDGED[name]
    return pair[0] if machine == "x86_64" else pair[1]


def _op(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, k)


def _assemble(parts: list[bytes]) -> Program:
    data = b"".join(parts)
    return (ctypes.c_char * len(data)).from_buffer_copy(data)


def _head(machine: str) -> list[bytes]:
    """Another architecture's numbers mean other calls: they end the process."""
    parts = [
        _op(_LD, _ARCHITECTURE),
        _op(_JEQ, _AUDIT_ARCH[machine], 1, 0),
        _op(_RET, _KILL),
        _op(_LD, _NUMBER),
    ]
    # Newer than the table, or x32's: as if the kernel did not have it.
    return [*parts, _op(_JGT, syscalls.LAST_KNOWN, 0, 1), _op(_RET, _ERRNO | _ENOSYS)]


def deny_program(*, is_pinned: bool = False, machine: str = MACHINE) -> Program:
    """Lets through what Docker's default profile lets through, or less; the rest fails (EPERM).

    When the sandbox is pinned to its CPUs, choosing others does nothing, and says nothing.
    """
    parts = _head(machine)
    if is_pinned:
        parts += _when("sched_setaffinity", machine, [_op(_RET, _ERRNO)])
    # clone3 takes its flags from memory, which a filter cannot read: glibc then falls back.
    parts += _when("clone3", machine, [_op(_RET, _ERRNO | _ENOSYS)])
    refuse, allow = _op(_RET, _ERRNO | _EPERM), _op(_RET, _ALLOW)
    parts += _when(
        "clone", machine, [_op(_LD, _FIRST), _op(_JSET, _NAMESPACE_FLAGS, 0, 1), refuse, allow]
    )
    parts += _when("ioctl", machine, _unless(_SECOND, (_TIOCSTI, _TIOCLINUX), refuse, allow))
    parts += _when("socket", machine, _unless(_FIRST, (_AF_ALG, _AF_VSOCK), refuse, allow))
    parts += _when("personality", machine, _unless(_FIRST, _PERSONALITIES, allow, refuse))
    for first, last in _ranges(machine):
        parts += [_op(_JGE, first, 1, 0), refuse, _op(_JGT, last, 1, 0), allow]
    return _assemble([*parts, refuse])


def _when(name: str, machine: str, parts: list[bytes]) -> list[bytes]:
    """What happens to one call; all others pass by."""
    number = number_of(name, machine)
    return [] if number is None else [_op(_JEQ, number, 0, len(parts)), *parts]


def _unless(argument: int, values: tuple[int, ...], then: bytes, otherwise: bytes) -> list[bytes]:
    """Load the lower half of an argument, and decide by whether it is one of these values."""
    last = len(values) - 1
    tests = [
        _op(_JEQ, value, last - index, 0 if index < last else 1)
        for index, value in enumerate(values)
    ]
    return [_op(_LD, argument), *tests, then, otherwise]


def _ranges(machine: str) -> list[tuple[int, int]]:
    """The allowed numbers as rising ranges, both ends included."""
    found: list[tuple[int, int]] = []
    numbers = {number_of(name, machine) for name in syscalls.ALLOWED} - {None}
    for number in sorted(n for n in numbers if n is not None):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def trace_program() -> Program:
    """Reports every start of a program and every opening of a file to the listener."""
    parts = [
        _op(_LD, _ARCHITECTURE),
        _op(_JEQ, _AUDIT_ARCH[MACHINE], 1, 0),
        _op(_RET, _ALLOW),
        _op(_LD, _NUMBER),
    ]
    for name in ("execve", "execveat", "open", "openat", "openat2"):
        parts += _when(name, MACHINE, [_op(_RET, _USER_NOTIF)])
    parts.append(_op(_RET, _ALLOW))
    return _assemble(parts)
