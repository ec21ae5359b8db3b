"""What a hostile command must not reach. Functions of a `Bench`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sandbox.contracts import Limits
from tests.sandbox.conformance import Bench, out, sh

_HERE = Path(__file__).resolve()


def files_of_the_host_are_out_of_sight(bench: Bench) -> None:
    with bench.start() as sandbox:
        for path in (str(_HERE), sys.prefix, "/etc/shadow", "/boot", "/var/lib/dpkg", "/etc/ssh"):
            assert sh(sandbox, f"ls {path!r}").exit_status != 0, path
        for path in ("/root", "/home", "/mnt", "/media", "/srv", "/sys", "/opt", "/tmp"):
            assert out(sandbox, f"ls -A {path}") == "", path
        seen = sh(sandbox, "cd /proc/1/root && ls -A root home tmp").stdout
        assert seen in (b"", b"home:\n\nroot:\n\ntmp:\n")


def the_environment_of_the_host_is_out_of_sight(bench: Bench) -> None:
    os.environ["CANARY_OF_THE_TESTS"] = "f7a1"
    try:
        with bench.start() as sandbox:
            text = out(sandbox, "env; cat /proc/[0-9]*/environ /proc/self/environ | tr '\\0' '\\n'")
    finally:
        del os.environ["CANARY_OF_THE_TESTS"]
    assert "f7a1" not in text
    assert {line.split("=")[0] for line in text.split()} <= {
        *("HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "_", "OLDPWD"),
    }


def processes_of_the_host_cannot_be_seen_or_signalled(bench: Bench) -> None:
    victim = subprocess.Popen(["sleep", "60"])
    try:
        with bench.start() as sandbox:
            assert sh(sandbox, f"kill -9 {victim.pid}").exit_status != 0
            sh(sandbox, "kill -9 -1; kill -9 1")
            seen = out(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            assert "sleep 60" not in seen
            assert len(out(sandbox, "echo /proc/[0-9]*").split()) <= 4
            assert out(sandbox, "tr '\\0' ' ' < /proc/1/cmdline").startswith("/bin/bash -c echo")
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def settings_of_the_kernel_cannot_be_written(bench: Bench) -> None:
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    with bench.start() as sandbox:
        for name in (
            "kernel/core_pattern",
            "kernel/hostname",
            "vm/overcommit_memory",
            "fs/file-max",
        ):
            command = f"cat /proc/sys/{name} > /tmp/v; cat /tmp/v > /proc/sys/{name}"
            assert sh(sandbox, command).exit_status != 0, name
        assert sh(sandbox, "echo h > /proc/sysrq-trigger").exit_status != 0
        assert sh(sandbox, "echo x > /sys/fs/cgroup/x").exit_status != 0
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def the_system_is_read_only(bench: Bench) -> None:
    with bench.start() as sandbox:
        for path in ("/usr/x", "/usr/bin/x", "/bin/x", "/lib/x", "/usr/local/../lib/x", "/dev/x"):
            assert sh(sandbox, f"echo > {path}").exit_status != 0, path
        assert sh(sandbox, "echo > /usr/local/x && echo > /opt/x && echo > /etc/x").exit_status == 0


_CALLS = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    print(name, errno.errorcode[ctypes.get_errno()] if result < 0 else 'done')
call('mount', b'none', b'/tmp', b'tmpfs', 0, None)
call('umount2', b'/proc', 2)
call('unshare', 0x10000000)
call('unshare', 0x00020000)
call('setns', 0, 0)
call('pivot_root' if hasattr(libc, 'pivot_root') else 'chroot', b'/nowhere', b'/nowhere')
call('mknod', b'/tmp/disk', 0o60600, os.makedev(8, 0))
call('swapoff', b'/x')
call('sethostname', b'x', 1)
call('settimeofday', bytes(16), None)
call('setpriority', 0, 0, -10)
stack = ctypes.create_string_buffer(65536)
top = ctypes.c_void_p(ctypes.addressof(stack) + 65536 - 64)
function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0)
call('clone', function, top, 0x10000000 | 17, None)
"""


def dangerous_calls_are_denied(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sandbox.exec(["python3", "-I", "-c", _CALLS], timeout_seconds=20)
    lines = result.stdout.decode().split("\n")[:-1]
    assert len(lines) == 12, result
    assert [line for line in lines if line.endswith("done")] == []


def capabilities_are_few_and_setuid_is_dead(bench: Bench) -> None:
    with bench.start() as sandbox:
        status = out(sandbox, "cat /proc/self/status")
        fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
        for name in ("CapEff", "CapPrm", "CapBnd"):
            assert int(fields[name], 16) & ~0x800405FB == 0, name
        assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
        assert int(out(sandbox, "awk '{print $2}' /proc/self/uid_map")) != 0


def there_is_no_network_but_loopback(bench: Bench) -> None:
    program = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname(), 2)\n"
        "for address in (('1.1.1.1', 53), ('10.0.0.1', 80)):\n"
        " try: socket.create_connection(address, 2); print('reached', address)\n"
        " except OSError as error: print(type(error).__name__)\n"
        "print(sorted(name for _n, name in socket.if_nameindex()))\n"
    )
    with bench.start() as sandbox:
        result = sandbox.exec(["python3", "-I", "-c", program], timeout_seconds=20)
        assert result.stdout == b"OSError\nOSError\n['lo']\n", result


def devices_are_the_harmless_ones(bench: Bench) -> None:
    with bench.start() as sandbox:
        names = set(out(sandbox, "ls /dev").split())
        assert names <= {
            *("console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm"),
            *("stderr", "stdin", "stdout", "tty", "urandom", "zero"),
        }


def descriptors_of_the_warden_do_not_leak(bench: Bench) -> None:
    with bench.start() as sandbox:
        found = out(sandbox, "ls -l /proc/self/fd | awk '{print $9, $11}'").split("\n")
        assert sorted(line.split()[0] for line in found if line.strip()) == ["0", "1", "2", "3"]
        assert "/proc/" in next(line for line in found if line.startswith("3 "))


def another_sandbox_is_out_of_reach(bench: Bench) -> None:
    with bench.start() as one, bench.start(Limits(cpus=1)) as two:
        sh(one, "sleep 345 & echo secret > /tmp/secret; echo secret > /dev/shm/secret")
        assert "345" not in out(two, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert sh(two, "ls /tmp/secret /dev/shm/secret").exit_status != 0
        sh(two, "kill -9 -1")
        two.kill_all()
        assert "345" in out(one, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")


CASES = (
    files_of_the_host_are_out_of_sight,
    the_environment_of_the_host_is_out_of_sight,
    processes_of_the_host_cannot_be_seen_or_signalled,
    settings_of_the_kernel_cannot_be_written,
    the_system_is_read_only,
    dangerous_calls_are_denied,
    capabilities_are_few_and_setuid_is_dead,
    there_is_no_network_but_loopback,
    devices_are_the_harmless_ones,
    descriptors_of_the_warden_do_not_leak,
    another_sandbox_is_out_of_reach,
)
