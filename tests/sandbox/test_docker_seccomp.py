"""What Docker's default profile denies, our filter denies: asked of the engine that is there.

A container with Docker's defaults makes every call that our filter allows.
"""

from __future__ import annotations

import errno
import os
import re
import signal

import docker as sdk
import pytest

from sandbox.backends.docker import DockerBackend
from sandbox.backends.docker_engine import LABEL
from sandbox.warden import seccomp, syscalls
from sandbox.warden.kernel import MACHINE

Answers = dict[str, tuple[str, int]]

_NAMESPACES = os.CLONE_NEWNS | os.CLONE_NEWUTS | os.CLONE_NEWIPC | os.CLONE_NEWUSER
_NAMESPACES |= os.CLONE_NEWPID | os.CLONE_NEWNET | os.CLONE_NEWCGROUP

# Makes each call in a child of its own and says how it ended: the error's number, 0, or a signal.
_TRY_EACH = r"""
use strict; use warnings; use POSIX ();
for my $call (split /\n/, $ARGV[0]) {
    my ($what, $number, @arguments) = split ' ', $call;
    $_ = int $_ for $number, @arguments;
    my $child = fork // die "fork: $!";
    if (!$child) {
        alarm($what eq 'pause' ? 1 : 60);
        POSIX::_exit(syscall($number, @arguments) == -1 ? $! + 0 : 0);
    }
    waitpid($child, 0) == $child or die "waitpid: $!";
    print "$what ", $? & 127 ? 'signal ' . ($? & 127) : 'errno ' . ($? >> 8), "\n";
}
"""
# No call is left out: those that do not return end the child, by a signal in these cases.
_NO_RETURN = {
    "pause": signal.SIGALRM,
    "rt_sigreturn": signal.SIGSEGV,  # there is no frame to return to
    "uretprobe": signal.SIGILL,  # called by no probe; older kernels do not have it
    "vfork": signal.SIGSEGV,  # parent and child share perl's stack; it may also go well
}
# The kernel itself answers EPERM to a process that may still gain privileges.
_EPERM_OF_THE_KERNEL = {"landlock_restrict_self"}
# Calls below 424 that the default profile allows from this version of the engine on; it is the
# profile of the newest that ours is made after.
_ALLOWED_SINCE = {
    "process_vm_readv": (23, 0),
    "process_vm_writev": (23, 0),
    "pkey_alloc": (23, 0),
    "pkey_free": (23, 0),
    "pkey_mprotect": (23, 0),
    "name_to_handle_at": (25, 0),  # and from a late patch of 20.10 and of 24.0 on
    "uretprobe": (28, 2),
}


def _calls() -> dict[str, tuple[int, ...]]:
    """Everything that we allow on this machine, with arguments that do nothing where they can."""
    found = {}
    for name in syscalls.ALLOWED:
        if (number := seccomp.number_of(name)) is not None:
            found[name] = (number, *[-1] * 6)
    # All flags that we allow at once: they contradict each other, so nothing is made.
    at = MACHINE == "aarch64"
    clone, personality, socket = (
        syscalls.JUDGED[name][at] or 0 for name in ("clone", "personality", "socket")
    )
    found["clone"] = (clone, 0xFFFFFFFF & ~_NAMESPACES, *[0] * 5)
    for value in (0, 8, 0x20000, 0x20008, 0xFFFFFFFF):
        found[f"personality:{value:#x}"] = (personality, value)
    for family in set(range(48)) - {38, 40}:
        found[f"socket:{family}"] = (socket, family, -1, -1)
    return found


def _answers(backend: DockerBackend, calls: dict[str, tuple[int, ...]], *options: str) -> Answers:
    """What a container with Docker's defaults, apart from the security options, makes of calls."""
    client = sdk.from_env()
    lines = "\n".join(f"{name} {' '.join(map(str, call))}" for name, call in calls.items())
    container = client.containers.create(
        "debian:bookworm-slim",
        ["perl", "-e", _TRY_EACH, lines],
        network_mode="none",
        security_opt=list(options),
        labels={LABEL: "sandbox"} | backend.labels,
    )
    try:
        container.start()
        status = container.wait(timeout=120)["StatusCode"]
        said = container.logs().decode()
    finally:
        container.remove(force=True)
        client.close()
    assert status == 0, said
    found = {}
    for line in said.splitlines():
        name, kind, number = line.split()
        found[name] = (kind, int(number))
    assert set(found) == set(calls), said
    return found


@pytest.mark.docker
def test_what_the_engines_default_profile_denies_we_deny(docker: DockerBackend) -> None:
    """A call that is denied there fails otherwise than it does in a container without a filter."""
    engine = docker.engine.api.info()
    assert {"name=seccomp,profile=default", "name=seccomp,profile=builtin"}.intersection(
        engine["SecurityOptions"]
    )
    calls = _calls()
    confined = _answers(docker, calls)
    free = _answers(docker, calls, "seccomp=unconfined")
    eperm, enosys = ("errno", errno.EPERM), ("errno", errno.ENOSYS)

    # The answers tell: none was lost to the alarm, and what the kernel itself says is known.
    ended = {name: number for name, (kind, number) in confined.items() if kind == "signal"}
    assert ended.items() <= _NO_RETURN.items()
    assert {name for name in calls if free[name] == eperm} <= _EPERM_OF_THE_KERNEL

    denied = {name for name in calls if confined[name] == eperm != free[name]}
    major, minor = map(int, re.findall(r"\d+", engine["ServerVersion"])[:2])
    assert denied <= {name for name, since in _ALLOWED_SINCE.items() if (major, minor) < since}
    unknown = {name for name in calls if confined[name] == enosys != free[name]}
    assert {name: calls[name][0] for name in unknown if calls[name][0] < 424} == {}
