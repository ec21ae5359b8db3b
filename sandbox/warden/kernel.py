"""The few system calls that Python's library does not offer, by ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)

MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME = 1, 4, 15
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 24, 38, 47

_SYSCALLS = {"x86_64": {"seccomp": 317, "capset": 126}, "aarch64": {"seccomp": 277, "capset": 91}}
MACHINE = platform.machine()
NUMBERS = _SYSCALLS.get(MACHINE, {})

_libc.mount.argtypes = [
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
]
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_libc.syscall.restype = ctypes.c_long

_CAPABILITY_VERSION_3 = 0x20080522
LAST_CAPABILITY = 40
# What a process that believes to be root keeps: Docker's default set without MKNOD, NET_RAW and
# AUDIT_WRITE. CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE
# SYS_CHROOT SETFCAP.
KEPT_CAPABILITIES = frozenset((0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31))


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2). Raises OSError, naming the target."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        flags,
        os.fsencode(options) or None,
    )
    _check(result, f"mount {kind or 'bind'} on {target}")


def prctl(option: int, one: int = 0, two: int = 0, three: int = 0, four: int = 0) -> None:
    """prctl(2). Raises OSError."""
    _check(_libc.prctl(option, one, two, three, four), f"prctl {option}")


def capset(mask: int) -> None:
    """Set effective and permitted capabilities to `mask`, inheritable to none. Raises OSError."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = struct.pack("=IIIIII", low, low, 0, high, high, 0)
    _check(_libc.syscall(ctypes.c_long(NUMBERS["capset"]), header, data), "capset")


def drop_bounding_set() -> None:
    """Take away for good every capability outside `KEPT_CAPABILITIES`."""
    for capability in range(LAST_CAPABILITY + 1):
        if capability not in KEPT_CAPABILITIES:
            _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


class _SockFprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def seccomp(program: ctypes.Array[ctypes.c_char], flags: int = 0) -> int:
    """Install a filter on this thread; with the listener flag returns its descriptor.

    Raises OSError.
    """
    fprog = _SockFprog((len(program)) // 8, ctypes.addressof(program))
    number = ctypes.c_long(NUMBERS["seccomp"])
    result = _libc.syscall(number, ctypes.c_uint(1), ctypes.c_uint(flags), ctypes.byref(fprog))
    return _check(result, "seccomp")


class _IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


_libc.process_vm_readv.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_ulong,
]
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_buffer = ctypes.create_string_buffer(4096)


def read_memory(pid: int, address: int, length: int) -> bytes:
    """At most 4096 bytes of another process's memory. Raises OSError."""
    length = min(length, 4096)
    local = _IoVec(ctypes.addressof(_buffer), length)
    remote = _IoVec(address, length)
    got = _libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return _buffer.raw[: _check(got, "process_vm_readv")]


def read_text(pid: int, address: int, limit: int = 4096) -> bytes:
    """A NUL-terminated string of another process, cut at `limit` bytes. Raises OSError."""
    text = b""
    while len(text) < limit:
        # Never over a page border in one go: the next page may not be there.
        part = read_memory(pid, address, min(limit - len(text), 4096 - address % 4096, 512))
        end = part.find(b"\0")
        if end >= 0:
            return text + part[:end]
        text += part
        address += len(part)
    return text


def set_process_name(name: bytes) -> None:
    """What `ps` shows as the command's name, at most 15 bytes."""
    kept = ctypes.create_string_buffer(name)
    prctl(PR_SET_NAME, ctypes.addressof(kept))
