"""The host: its files, processes, settings, devices, network, and other sandboxes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.contracts import Limits
from tests.sandbox.conformance_bench import (
    COMMANDS,
    Bench,
    host_file,
    host_processes,
    living,
    out,
    perl,
    sh,
)
from tests.sandbox.conformance_images import ELSEWHERE
from tests.sandbox.escape_cases_tools import denied, responsive_host, unchanged_host

_HERE = Path(__file__).resolve()


def files_of_the_host_are_out_of_sight(bench: Bench) -> None:
    with host_file() as secret, bench.start() as sandbox:
        for user in bench.users:
            for path in (secret, secret.parent, _HERE, "/etc/shadow-", "/boot/x", "/etc/ssh"):
                assert sh(sandbox, f"ls '{path}'", user=user).exit_status != 0, path
            for path in ("/root", "/home", "/mnt", "/media", "/srv", "/opt", "/tmp"):
                assert secret.parent.name not in out(sandbox, f"ls -A {path} || :", user=user)
            out(sandbox, f"echo > /tmp/bait-{user}", user=user)
            names = f"-name {secret.parent.name} -o -name bait-{user} -o -name {_HERE.name}"
            found = sh(sandbox, f"find / -xdev \\( {names} \\) 2>/dev/null", 60, user=user).stdout
            assert found == f"/tmp/bait-{user}\n".encode()
        assert not Path("/tmp/bait-None").exists()


def links_of_proc_lead_nowhere_else(bench: Bench) -> None:
    with host_file() as secret, bench.start() as sandbox:
        sh(sandbox, "sleep 300 & echo > /srv/marker")
        for user in bench.users:
            for way in ("1/root", "1/cwd", "self/root", "[0-9]*/root", "[0-9]*/task/*/root"):
                look = f"cat /proc/{way}{secret} /proc/{way}/../..{secret} 2>/dev/null"
                assert sh(sandbox, look, user=user).stdout == b"", way
            assert out(sandbox, "ls /proc/self/root/srv", user=user) == "marker\n"
        assert (
            sh(sandbox, "ls /proc/1/fd/ | while read f; do cat /proc/1/fd/$f/tmp; done").stdout
            == b""
        )


def a_way_out_by_chroot_leads_back_in(bench: Bench) -> None:
    program = (
        "mkdir '/srv/jail'; opendir D, '/'; chroot '/srv/jail' or print 'no chroot ';"
        " chdir D; chdir '..' for 1..64; chroot '.'; print -e $ARGV[0] ? 'out' : 'in',"
        " -e '/srv/marker' ? ' here' : ' nowhere'"
    )
    with host_file() as secret, bench.start() as sandbox:
        sh(sandbox, "echo > /srv/marker")
        result = perl(sandbox, program, str(secret))
        assert result.stdout.removeprefix(b"no chroot ") == b"in here", result


def the_environment_of_the_host_is_out_of_sight(bench: Bench) -> None:
    os.environ["CANARY_OF_THE_TESTS"] = "f7a1"
    try:
        with bench.start() as sandbox:
            look = (
                "env; for p in /proc/[0-9]*; do cat $p/environ; done 2>/dev/null | tr '\\0' '\\n'"
            )
            text = out(sandbox, f"{look}; :", env=[("MINE", "seen")])
    finally:
        del os.environ["CANARY_OF_THE_TESTS"]
    assert "f7a1" not in text
    assert text.count("MINE=seen") >= 2
    names = {line.split("=")[0] for line in text.split("\n") if "=" in line}
    known = {"HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "_", "OLDPWD", "MINE", "LC_ALL"}
    assert names <= known | {"TINI_SUBREAPER"}


def processes_of_the_host_cannot_be_seen_or_signalled(bench: Bench) -> None:
    victim = subprocess.Popen(["sleep", "98765"])
    try:
        with bench.start() as sandbox:
            sh(sandbox, "setsid sleep 300 &")
            for user in bench.users:
                assert sh(sandbox, f"kill -9 {victim.pid}", user=user).exit_status != 0
                seen = out(sandbox, COMMANDS, user=user)
                assert "98765" not in seen
                assert "sleep 300" in seen
                denied_or_gone = [("ptrace", [16, victim.pid, 0, 0])]
                with contextlib.suppress(AssertionError):  # no such process is as good
                    denied(sandbox, denied_or_gone, user)
            assert len(out(sandbox, "echo /proc/[0-9]*").split()) <= 16
            sh(sandbox, "kill -9 -1; kill -9 1; kill -STOP 1; kill -9 -- -2 2 3 4 5")
            assert out(sandbox, "echo on") == "on\n"
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


_SETTINGS = (
    *("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/overcommit_memory"),
    *("fs/file-max", "kernel/randomize_va_space", "kernel/threads-max", "kernel/sysrq"),
    *("kernel/yama/ptrace_scope", "kernel/unprivileged_bpf_disabled", "vm/drop_caches"),
    *("user/max_user_namespaces", "fs/suid_dumpable", "kernel/hotplug", "kernel/panic"),
)


def settings_of_the_kernel_cannot_be_written(bench: Bench) -> None:
    with unchanged_host(), bench.start() as sandbox:
        for user in bench.users:
            for name in _SETTINGS:
                command = f'v=$(cat /proc/sys/{name}); echo "$v" > /proc/sys/{name}'
                assert sh(sandbox, command, user=user).exit_status != 0, name
            for name in ("sysrq-trigger", "irq/default_smp_affinity", "acpi/wakeup", "mtrr"):
                assert sh(sandbox, f"echo h > /proc/{name}", user=user).exit_status != 0, name
            assert sh(sandbox, "echo x > /proc/self/comm", user=user).exit_status == 0
        # Some belong to the sandbox's own namespaces: they may change, inside only.
        left = "find /proc/sys /proc/irq /proc/bus /proc/fs -type f -writable 2>/dev/null"
        for path in set(out(sandbox, f"{left} || :").split()) - {"/proc/sys/kernel/ns_last_pid"}:
            before = Path(path).read_text()
            sh(sandbox, f"v=$(cat {path}) && echo $((v + 1)) > {path}")
            assert Path(path).read_text() == before, path


def kernel_interfaces_cannot_be_written(bench: Bench) -> None:
    names = (
        *("/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/ksm/run"),
        *("/sys/module/kernel/parameters/consoleblank", "/sys/fs/cgroup/release_agent"),
        *("/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/notify_on_release"),
        *("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/cgroup.procs"),
        *("/sys/fs/cgroup/pids/pids.max", "/proc/sys/fs/binfmt_misc/register"),
        *("/sys/kernel/debug/x", "/sys/kernel/security/x", "/sys/firmware/x"),
    )
    with unchanged_host(), bench.start() as sandbox:
        for user in bench.users:
            for name in names:
                is_refused = sh(sandbox, f"echo 0 > {name}", user=user).exit_status != 0
                # A file of that name in a folder of the sandbox's own is no kernel interface.
                assert is_refused or not Path(name).exists(), name
                sh(sandbox, f"rm -f {name}", user=user)
            assert sh(sandbox, "mkdir /sys/fs/cgroup/memory/x", user=user).exit_status != 0
            command = "find /sys -type f -writable 2>/dev/null | head -3 || :"
            assert out(sandbox, command, 60, user=user) == ""


def modes_of_the_kernels_files_cannot_be_changed(bench: Bench) -> None:
    """They are one for the machine and all that runs on it, and root is their owner."""

    def modes() -> dict[str, int]:
        names = [name for name in os.listdir("/proc") if not name.isdecimal()]
        return {name: Path("/proc", name).lstat().st_mode for name in names}

    before = modes()
    with bench.start() as sandbox:
        assert out(sandbox, "chmod 700 /tmp && stat -c %a /tmp") == "700\n"
        sh(sandbox, "chmod -R 0 /proc /sys; chown -R 1:1 /proc", seconds=60)
    assert modes() == before
    assert {Path("/proc", name).lstat().st_uid for name in before} == {0}


def memory_and_messages_of_the_kernel_cannot_be_read(bench: Bench) -> None:
    names = ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/kmsg")
    with bench.start() as sandbox:
        for user in bench.users:
            for name in (*names, "/proc/kpagecount", "/proc/keys"):
                result = sh(sandbox, f"timeout 3 head -c 64 {name}", user=user)
                assert result.stdout == b"", name
            addresses = "awk '$1 !~ /^0+$/' /proc/kallsyms 2>/dev/null | head -2"
            assert out(sandbox, addresses, user=user) == ""
            assert sh(sandbox, "dmesg", user=user).exit_status != 0


def devices_are_the_harmless_ones(bench: Bench) -> None:
    with bench.start() as sandbox:
        names = set(out(sandbox, "ls /dev").split())
        assert names <= {
            *("console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm"),
            *("stderr", "stdin", "stdout", "tty", "urandom", "zero", "mqueue"),
        }
        for user in bench.users:
            for name in ("vda", "sda", "kvm", "fuse", "loop-control", "net/tun", "mem", "vsock"):
                assert sh(sandbox, f"head -c 1 /dev/{name}", user=user).exit_status != 0
            assert out(sandbox, "head -c 4 /dev/zero | wc -c", user=user) == "4\n"


def programs_of_the_host_stay_as_they_are(bench: Bench) -> None:
    programs = [Path(os.path.realpath(name)) for name in ("/bin/bash", "/bin/true", sys.executable)]
    before = [(path.stat().st_mtime_ns, path.stat().st_size) for path in programs]
    overwrite = (
        "for f in /proc/1/exe /proc/self/exe /usr/bin/true /bin/bash /sbin/docker-init"
        " /dev/init /usr/bin/perl; do (echo x >> $f) 2>/dev/null; (rm -f $f) 2>/dev/null; done; :"
    )
    with bench.start() as sandbox, bench.start(Limits(cpus=1)) as other:
        sh(sandbox, overwrite)
        assert out(other, "true; bash -c 'echo fine'") == "fine\n"
    with bench.start() as later:
        assert out(later, "true; bash -c 'echo fine'; ls /usr/x 2>/dev/null || :") == "fine\n"
    assert [(path.stat().st_mtime_ns, path.stat().st_size) for path in programs] == before


# -- sockets ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _listeners() -> Iterator[tuple[int, str, list[object]]]:
    """A TCP server on all addresses of the host, and one with an abstract name."""
    name = f"ratchet-{os.urandom(6).hex()}"
    reached: list[object] = []
    with socket.create_server(("0.0.0.0", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0{name}")
        unix.listen()

        def accept(server: socket.socket) -> None:
            with contextlib.suppress(OSError):
                reached.append(server.accept())

        for server in (tcp, unix):
            threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield tcp.getsockname()[1], name, reached
        for server in (tcp, unix):
            server.shutdown(socket.SHUT_RDWR)


_CONNECT = """
use Socket; my ($port, $name, @hosts) = @ARGV;
for (@hosts) { my $s; socket $s, PF_INET, SOCK_STREAM, 0; local $SIG{ALRM} = sub { die }; alarm 2;
  print "$_ " if eval { connect $s, sockaddr_in($port, inet_aton($_)) }; alarm 0 }
socket A, PF_UNIX, SOCK_STREAM, 0; print "unix" if connect A, sockaddr_un("\\0$name");
socket L, PF_INET, SOCK_STREAM, 0; bind L, sockaddr_in(8312, INADDR_LOOPBACK); listen L, 1;
socket C, PF_INET, SOCK_STREAM, 0; print ' own' if connect C, sockaddr_in(8312, INADDR_LOOPBACK);
"""


def the_network_of_the_host_is_out_of_reach(bench: Bench) -> None:
    hosts = {"127.0.0.1", "172.17.0.1", "192.168.0.1", "10.0.2.2", "0.0.0.0", "255.255.255.255"}
    with contextlib.suppress(OSError):
        hosts |= {str(row[4][0]) for row in socket.getaddrinfo(socket.gethostname(), 0, family=2)}
    with _listeners() as (port, name, reached), bench.start() as sandbox:
        for user in bench.users:
            result = perl(sandbox, _CONNECT, str(port), name, *sorted(hosts), user=user, seconds=60)
            assert result.stdout == b" own", result
        assert reached == []


def addresses_elsewhere_are_out_of_reach(bench: Bench) -> None:
    program = (
        "use Socket; for (@ARGV) { my ($h, $p) = split /:/; socket my $s, PF_INET, SOCK_STREAM, 0;"
        " local $SIG{ALRM} = sub { die }; alarm 3;"
        " print $_ if eval { connect $s, sockaddr_in($p, inet_aton($h)) }; alarm 0 }"
        " socket U, PF_INET, SOCK_DGRAM, 0; print 'sent'"
        " if send U, 'x', 0, sockaddr_in(53, inet_aton('8.8.8.8'))"
    )
    with bench.start() as sandbox:
        for user in bench.users:
            result = perl(sandbox, program, *ELSEWHERE, user=user, seconds=60)
            assert (result.exit_status, result.stdout) == (0, b"")
            names = sh(sandbox, "getent hosts example.org metadata.google.internal", 60, user=user)
            assert names.stdout == b""
            assert b"127.0.0.1" in sh(sandbox, "getent ahosts localhost", user=user).stdout
        for command in ("ip link add x type dummy", "ip link set eth0 up"):
            assert sh(sandbox, command).exit_status != 0


def sockets_of_engines_are_absent(bench: Bench) -> None:
    names = (
        *("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"),
        *("/run/podman/podman.sock", "/run/dbus/system_bus_socket", "/run/systemd/private"),
    )
    with bench.start() as sandbox:
        for name in names:
            assert sh(sandbox, f"ls {name}").exit_status != 0, name
        assert out(sandbox, "find / -xdev -type s 2>/dev/null || :", 60) == ""
        unix = out(sandbox, "tail -n +2 /proc/net/unix | wc -l")
        assert int(unix) == 0


def descriptors_of_the_machinery_do_not_leak(bench: Bench) -> None:
    with bench.start() as sandbox:
        for user in bench.users:
            found = out(sandbox, "ls -l /proc/self/fd | awk 'NR > 1 {print $9, $11}'", user=user)
            rows = dict(line.split() for line in found.splitlines())
            assert sorted(rows) == ["0", "1", "2", "3"]
            assert rows.pop("3").startswith("/proc/")
            assert all(v.startswith(("pipe:", "/dev/null")) for v in rows.values()), rows


def another_sandbox_is_out_of_reach(bench: Bench) -> None:
    with bench.start(Limits(cpus=1)) as one, bench.start(Limits(cpus=1)) as two:
        sh(one, "setsid sleep 345 & echo secret > /tmp/secret; echo secret > /dev/shm/secret")
        (line,) = living(one, "sleep 345")
        for user in bench.users:
            assert living(two, "sleep 345") == []
            assert sh(two, f"kill -9 {line.split()[0]}9", user=user).exit_status != 0
            look = "find / -xdev -name secret 2>/dev/null; cat /proc/*/root/tmp/secret"
            assert sh(two, look, 60, user=user).stdout == b""
        sh(
            two,
            "kill -9 -1; echo changed > /etc/hosts; echo changed > /app/data/one.txt; rm -rf /srv",
        )
        two.kill_all()
        assert len(living(one, "sleep 345")) == 1
        assert out(one, "cat /app/data/one.txt /tmp/secret; ls -d /srv") == "one\nsecret\n/srv\n"
        assert "changed" not in out(one, "cat /etc/hosts")


def nothing_outlives_its_sandbox(bench: Bench) -> None:
    mark = f"3{time.time_ns() % 10**9:09d}"
    with responsive_host():
        with bench.start() as sandbox:
            sh(sandbox, f"trap '' HUP TERM; for n in 1 2 3; do setsid nohup sleep {mark} & done")
            assert len(host_processes(f"sleep {mark}")) >= 3
        end = time.monotonic() + 15
        while host_processes(f"sleep {mark}"):
            assert time.monotonic() < end
            time.sleep(0.05)


CASES = (
    files_of_the_host_are_out_of_sight,
    links_of_proc_lead_nowhere_else,
    a_way_out_by_chroot_leads_back_in,
    the_environment_of_the_host_is_out_of_sight,
    processes_of_the_host_cannot_be_seen_or_signalled,
    settings_of_the_kernel_cannot_be_written,
    kernel_interfaces_cannot_be_written,
    modes_of_the_kernels_files_cannot_be_changed,
    memory_and_messages_of_the_kernel_cannot_be_read,
    devices_are_the_harmless_ones,
    programs_of_the_host_stay_as_they_are,
    the_network_of_the_host_is_out_of_reach,
    addresses_elsewhere_are_out_of_reach,
    sockets_of_engines_are_absent,
    descriptors_of_the_machinery_do_not_leak,
    another_sandbox_is_out_of_reach,
    nothing_outlives_its_sandbox,
)
