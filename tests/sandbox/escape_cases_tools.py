"""The tools of hostile commands, and the host's own eyes on what they did."""

from __future__ import annotations

import platform
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandbox.base import Sandbox
from tests.sandbox.conformance_bench import perl

# name: (x86_64, aarch64)
NUMBERS = {
    "getpid": (39, 172),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone": (56, 220),
    "clone3": (435, 435),
    "mknodat": (259, 33),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "open_by_handle_at": (304, 265),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "quotactl": (179, 60),
    "fanotify_init": (300, 262),
    "kcmp": (312, 272),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "ioprio_set": (251, 30),
    "setrlimit": (160, 164),
    "capset": (126, 91),
    "setresuid": (117, 147),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "socket": (41, 198),
    "memfd_create": (319, 279),
    "setxattr": (188, 5),
    "vhangup": (153, 58),
}
_COLUMN = 0 if platform.machine() == "x86_64" else 1

_CALLS = r"""
use POSIX ();
for my $line (split /\n/, join '', <STDIN>) {
  my ($name, $number, @words) = split /\t/, $line;
  my $is_missing = 0;
  my @arguments = map {
    if (/^s:(.*)/) { "$1\0" }
    elsif (/^h:(.*)/) { pack 'H*', $1 }
    elsif (/^f:(.*)/) { my $f; open $f, '<', $1 or $is_missing = "$!"; push @kept, $f; fileno $f }
    else { $_ + 0 }
  } @words;
  if ($is_missing) { print "$name\topening: $is_missing\n"; next }
  $! = 0;
  my $result = syscall $number + 0, @arguments;
  my $error = $! + 0;
  POSIX::_exit(0) if $name =~ /^clone/ and $result == 0;
  print "$name\t", $result < 0 ? "refused $error" : 'done', "\n";
}
"""

Call = tuple[str, Sequence[object]]
EPERM, EACCES, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT = 1, 13, 38, 97, 93
DENIED = frozenset(f"refused {number}" for number in (EPERM, EACCES, ENOSYS))


def calls(sandbox: Sandbox, wanted: Sequence[Call], user: str | None = None) -> list[str]:
    """Make system calls, one after another: `done`, or `refused` with the error's number.

    A name may carry a remark after a blank. Words: numbers, `s:text`, `h:hex bytes`, `f:path` (its
    descriptor). The first call, getpid, shows that the tool itself works.
    """
    lines = [f"getpid\t{NUMBERS['getpid'][_COLUMN]}"]
    for name, words in wanted:
        number = NUMBERS[name.split()[0]][_COLUMN]
        lines.append("\t".join([name, str(number), *(str(word) for word in words)]))
    result = perl(sandbox, _CALLS, stdin="\n".join(lines).encode(), user=user, seconds=60)
    rows = [line.split("\t") for line in result.stdout.decode().splitlines()]
    assert [row[0] for row in rows] == ["getpid", *(name for name, _words in wanted)], result
    assert rows[0][1] == "done"
    return [row[1] for row in rows[1:]]


def denied(sandbox: Sandbox, wanted: Sequence[Call], user: str | None = None) -> None:
    """All of these calls are refused, for want of a right and not of sense."""
    answers = zip(wanted, calls(sandbox, wanted, user), strict=True)
    assert [(name, user, answer) for (name, _w), answer in answers if answer not in DENIED] == []


# -- the host's side --------------------------------------------------------------------------

_SETTINGS = (
    *("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/domainname"),
    *("vm/overcommit_memory", "fs/file-max", "kernel/randomize_va_space", "kernel/pid_max"),
    *("kernel/kptr_restrict", "kernel/dmesg_restrict", "net/ipv4/ip_forward"),
)


def _state() -> tuple[object, ...]:
    settings = [Path("/proc/sys", name) for name in _SETTINGS]
    values = [path.read_text() for path in settings if path.exists()]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    # Others may start sandboxes of their own meanwhile: their mounts are none of our business.
    ours = [line for line in mounts if not any(w in line for w in ("docker", "netns", "overlay"))]
    return socket.gethostname(), values, Path("/proc/swaps").read_text(), ours


@contextmanager
def unchanged_host() -> Iterator[None]:
    """Fails when settings, mounts, swap, names or the clock of the host are not as before."""
    before, offset = _state(), time.time() - time.monotonic()
    yield
    assert _state() == before
    assert abs(time.time() - time.monotonic() - offset) < 5


@contextmanager
def responsive_host(most_seconds: float = 8.0) -> Iterator[None]:
    """Fails when, meanwhile, a small program of the host takes too long, or cannot be started."""
    spent: list[float] = []
    end = threading.Event()

    def probe() -> None:
        while not end.is_set():
            started = time.monotonic()
            subprocess.run(["/bin/true"], check=True, timeout=60)
            spent.append(time.monotonic() - started)
            end.wait(0.1)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(60)
    assert spent
    assert max(spent) < most_seconds
