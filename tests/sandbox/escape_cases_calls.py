"""System calls that must be refused, as root inside and as an ordinary user."""

from __future__ import annotations

from sandbox.contracts import SandboxFile
from tests.sandbox.conformance_bench import Bench, out, perl, sh
from tests.sandbox.escape_cases_tools import (
    EAFNOSUPPORT,
    EPROTONOSUPPORT,
    calls,
    denied,
    unchanged_host,
)

_NEWNS, _NEWUSER, _NEWPID, _NEWNET, _SIGCHLD = 0x20000, 0x10000000, 0x20000000, 0x40000000, 17
_AT_FDCWD = -100


def nothing_can_be_mounted_or_unmounted(bench: Bench) -> None:
    wanted = [
        ("mount tmpfs", ["s:none", "s:/tmp", "s:tmpfs", 0, 0]),
        ("mount bind", ["s:/etc", "s:/tmp", "s:none", 4096, 0]),
        ("mount proc", ["s:proc", "s:/tmp", "s:proc", 0, 0]),
        ("mount sysfs", ["s:sysfs", "s:/tmp", "s:sysfs", 0, 0]),
        ("mount cgroup", ["s:cgroup", "s:/tmp", "s:cgroup", 0, "s:memory"]),
        ("mount disk", ["s:/dev/vda", "s:/tmp", "s:ext4", 0, 0]),
        ("mount remount", ["s:none", "s:/proc", "s:none", 32 | 4096, 0]),
        ("mount shared", ["s:none", "s:/", "s:none", 1 << 20, 0]),
        ("umount2 proc", ["s:/proc", 2]),
        ("umount2 root", ["s:/", 2]),
        ("open_tree", [_AT_FDCWD, "s:/", 1]),
        ("fsopen", ["s:tmpfs", 0]),
        ("mount_setattr", [_AT_FDCWD, "s:/", 0, f"h:{'00' * 32}", 32]),
        ("pivot_root", ["s:/tmp", "s:/tmp"]),
    ]
    with unchanged_host(), bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)
            for command in ("mount -t tmpfs none /mnt", "mount --bind / /mnt", "umount -l /proc"):
                assert sh(sandbox, command, user=user).exit_status != 0, command
        assert out(sandbox, "ls /mnt; cut -d' ' -f2 /proc/mounts | grep -c ^/tmp$ || :") == "0\n"


def no_new_namespace_can_be_made_or_entered(bench: Bench) -> None:
    wanted = [
        *((f"unshare {flag:#x}", [flag]) for flag in (_NEWUSER, _NEWNS, _NEWPID, _NEWNET)),
        ("unshare all", [_NEWUSER | _NEWNS | _NEWPID | _NEWNET]),
        ("clone user", [_NEWUSER | _SIGCHLD, 0, 0, 0, 0]),
        ("clone user mount", [_NEWUSER | _NEWNS | _SIGCHLD, 0, 0, 0, 0]),
        ("clone3", ["h:" + _NEWUSER.to_bytes(8, "little").hex() + "00" * 80, 88]),
        ("setns self", ["f:/proc/self/ns/net", 0]),
    ]
    with unchanged_host(), bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)
            assert calls(sandbox, [("clone plain", [_SIGCHLD, 0, 0, 0, 0])], user) == ["done"]
            tricks = ("unshare -Urm true", "unshare -Un true", "nsenter -t 1 -m true")
            for command in tricks:
                assert sh(sandbox, command, user=user).exit_status != 0, command


def keys_of_the_kernel_are_out_of_reach(bench: Bench) -> None:
    wanted = [
        ("add_key", ["s:user", "s:name", "s:value", 5, -3]),
        ("request_key", ["s:user", "s:name", 0, -3]),
        ("keyctl session", [0, -3, 1]),
        ("keyctl join", [1, 0]),
    ]
    with bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)
            assert "ratchet" not in out(sandbox, "cat /proc/keys 2>/dev/null || :", user=user)


def bpf_perf_and_faults_are_out_of_reach(bench: Bench) -> None:
    array = (2, 4, 4, 1)  # an array of one number
    attributes = b"".join(number.to_bytes(4, "little") for number in array).hex() + "00" * 100
    event = "0100000070000000" + "00" * 104
    wanted = [
        ("bpf map", [0, f"h:{attributes}", 72]),
        ("perf_event_open", [f"h:{event}", 0, -1, -1, 0]),
        ("perf_event_open all", [f"h:{event}", -1, 0, -1, 0]),
        ("userfaultfd", [1]),
        ("io_uring_setup", [8, f"h:{'00' * 120}"]),
        ("fanotify_init", [0, 0]),
        ("kcmp", [1, 1, 0, 0, 0]),
    ]
    with bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)


def the_kernel_cannot_be_changed_or_restarted(bench: Bench) -> None:
    wanted = [
        ("init_module", [f"h:{'00' * 64}", 64, "s:"]),
        ("finit_module", ["f:/etc/passwd", "s:", 0]),
        ("delete_module", ["s:nothing", 0x800]),
        ("kexec_load", [0, 0, 0, 0]),
        ("reboot keys off", [0xFEE1DEAD, 0x28121969, 0]),
        ("swapon", ["s:/app/swap", 0]),
        ("swapoff", ["s:/app/swap"]),
        ("acct on", ["s:/tmp/acct"]),
        ("quotactl", [0x80000200, "s:/dev/vda", 2, "s:/x"]),
        ("syslog", [3, f"h:{'00' * 64}", 64]),
        ("vhangup", []),
    ]
    with unchanged_host(), bench.start() as sandbox:
        sh(sandbox, "truncate -s 4M /app/swap; mkswap /app/swap; : > /tmp/acct")
        for user in bench.users:
            denied(sandbox, wanted, user)
            for command in ("modprobe loop", "insmod /x.ko", "swapon /app/swap", "reboot -f"):
                assert sh(sandbox, command, user=user).exit_status != 0, command


def the_clock_and_the_names_of_the_host_stay(bench: Bench) -> None:
    wanted = [
        ("settimeofday", [f"h:{'00' * 16}", 0]),
        ("clock_settime", [0, f"h:{'00' * 16}"]),
        ("adjtimex", [f"h:0001{'00' * 206}"]),
        ("clock_adjtime", [0, f"h:0001{'00' * 206}"]),
        ("sethostname", ["s:evil", 4]),
        ("setdomainname", ["s:evil", 4]),
    ]
    with unchanged_host(), bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)
            for command in ("date -s 2001-01-01", "hostname evil"):
                assert sh(sandbox, command, user=user).exit_status != 0, command


def devices_cannot_be_made(bench: Bench) -> None:
    disk, memory = 0xFE00, 0x101  # vda, mem
    wanted = [
        ("mknodat disk", [_AT_FDCWD, "s:/tmp/disk", 0o60666, disk]),
        ("mknodat memory", [_AT_FDCWD, "s:/tmp/memory", 0o20666, memory]),
        ("mknodat shm", [_AT_FDCWD, "s:/dev/shm/memory", 0o20666, memory]),
    ]
    with bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)
            pipe = ("mknodat pipe", [_AT_FDCWD, f"s:/tmp/pipe-of-{user}", 0o10666, 0])
            assert calls(sandbox, [pipe], user) == ["done"]
            assert sh(sandbox, "mknod /tmp/disk b 254 0", user=user).exit_status != 0
        assert sh(sandbox, "ls /tmp/disk /tmp/memory").exit_status != 0


def files_cannot_be_opened_by_handle(bench: Bench) -> None:
    handle = "0800000001000000" + "0200000000000000"  # inode 2, the root of an ext4
    wanted = [("open_by_handle_at", ["f:/", f"h:{handle}", 0])]
    wanted += [("open_by_handle_at hosts", ["f:/etc/hosts", f"h:{handle}", 0])]
    with bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)


def raw_and_foreign_sockets_are_refused(bench: Bench) -> None:
    inet, inet6, packet, vsock, alg = 2, 10, 17, 40, 38
    stream, raw = 1, 3
    wanted = [
        ("socket raw", [inet, raw, 1]),
        ("socket raw any", [inet, raw, 255]),
        ("socket raw six", [inet6, raw, 58]),
        ("socket packet", [packet, raw, 768]),
        ("socket packet datagram", [packet, 2, 768]),
        ("socket vsock", [vsock, stream, 0]),
        ("socket alg", [alg, 5, 0]),
    ]
    others = (EAFNOSUPPORT, EPROTONOSUPPORT)
    with bench.start() as sandbox:
        for user in bench.users:
            assert calls(sandbox, [("socket plain", [inet, stream, 0])], user) == ["done"]
            answers = zip(wanted, calls(sandbox, wanted, user), strict=True)
            for (name, _words), answer in answers:
                allowed = ("refused 1", "refused 13", *(f"refused {n}" for n in others))
                assert answer in allowed, (name, user, answer)


def nobody_can_be_traced_who_is_less_confined(bench: Bench) -> None:
    """The first process and every other one are bound as the command is, or cannot be traced."""
    with bench.start() as sandbox:
        sh(sandbox, "setsid sleep 300 &")
        for user in bench.users:
            rows = out(
                sandbox,
                "for p in /proc/[0-9]*; do awk -v p=${p#/proc/} '/^(Seccomp|NoNewPrivs):/"
                " {v = v $2} END {print p, v}' $p/status; done 2>/dev/null",
                user=user,
            )
            loose = [line.split()[0] for line in rows.splitlines() if line.split()[1:] != ["12"]]
            attach = [(f"ptrace {pid}", [16, int(pid), 0, 0]) for pid in loose]
            denied(sandbox, attach, user)
            for pid in loose:
                assert sh(sandbox, f"exec 3<>/proc/{pid}/mem", user=user).exit_status != 0
            assert sh(sandbox, "exec 3</proc/$$/mem", user=user).exit_status == 0


def capabilities_are_few_and_cannot_be_won_back(bench: Bench) -> None:
    everything = "2205082000000000", "ffffffff" * 6
    regain = [("capset", [f"h:{part}" for part in everything])]
    # CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP NET_BIND_SERVICE SYS_CHROOT
    # AUDIT_WRITE SETFCAP
    allowed = 0xA00405FB | 1 << 29
    with bench.start() as sandbox:
        for user in bench.users:
            status = out(sandbox, "cat /proc/self/status", user=user)
            fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                assert int(fields[name], 16) & ~allowed == 0, (name, user)
            assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
            if user is not None:
                assert int(fields["CapEff"], 16) == 0
                denied(sandbox, [("setresuid", [0, 0, 0])], user)
            denied(sandbox, regain, user)


def priorities_and_limits_cannot_be_raised(bench: Bench) -> None:
    wanted = [
        ("setpriority", [0, 0, -10]),
        ("sched_setscheduler fifo", [0, 1, "h:01000000"]),
        ("ioprio_set", [1, 0, 1 << 13]),
        ("setrlimit files", [7, "h:" + "ffffff0000000000" * 2]),
        ("setrlimit core", [4, "h:" + "ffffff0000000000" * 2]),
    ]
    with bench.start() as sandbox:
        for user in bench.users:
            denied(sandbox, wanted, user)
            assert calls(sandbox, [("setpriority", [0, 0, 19])], user) == ["done"]
            for command in ("nice -n -5 true 2>&1 | grep -q cannot", "! chrt -f 1 true"):
                assert sh(sandbox, command, user=user).exit_status == 0, command
            shield = "echo -1000 > /proc/self/oom_score_adj"
            assert sh(sandbox, shield, user=user).exit_status != 0
            assert sh(sandbox, "echo 500 > /proc/self/oom_score_adj", user=user).exit_status == 0
            assert sh(sandbox, "ulimit -n 999999999", user=user).exit_status != 0
            assert sh(sandbox, "ulimit -n 10", user=user).exit_status == 0


def setuid_programs_give_nothing(bench: Bench) -> None:
    if not bench.has_users:
        return
    with bench.start() as sandbox:
        sh(sandbox, "cp /usr/bin/id /usr/bin/bash /srv; chmod 4755 /srv/id /srv/bash")
        assert out(sandbox, "stat -c %a:%u /srv/id") == "4755:0\n"
        assert out(sandbox, "/srv/id -u; /srv/id -ru", user="nobody") == "65534\n65534\n"
        assert sh(sandbox, "/srv/bash -p -c 'echo > /etc/x'", user="nobody").exit_status != 0
        capability = "0100000200040000" + "00" * 12  # cap_net_bind_service and the like
        name, path = "s:security.capability", "s:/srv/id"
        answer = calls(sandbox, [("setxattr", [path, name, f"h:{capability}", 20, 0])])
        if answer == ["done"]:
            sh(sandbox, "cp --preserve=all /srv/id /srv/cap")
            assert sh(sandbox, "/srv/cap -u", user="nobody").stdout in (b"65534\n", b"")
        for command in ("su -c true", "passwd -d root", "chsh root", "newgrp root < /dev/null"):
            assert sh(sandbox, command, 10, user="nobody").exit_status != 0, command


def a_terminal_cannot_be_typed_into(bench: Bench) -> None:
    inject = (
        "for $fd (0, 1, 2, 3, 9) { open my $f, '+<&=', $fd or next; my $c = 'x';"
        ' print "typed $fd\\n" if defined ioctl $f, 0x5412, $c }'
        " print open(T, '+<', '/dev/tty') ? 'tty' : 'none', open(T, '+<', '/dev/console') ? 1 : 0"
    )
    with bench.start() as sandbox:
        for user in bench.users:
            result = perl(sandbox, inject, user=user)
            assert result.stdout in (b"none0", b"none1"), result
            assert sh(sandbox, "tty", user=user).stdout == b"not a tty\n"
        sandbox.write_files([SandboxFile("\x1b]0;evil\x07", b"\x1b[31m")], "/srv")
        assert sh(sandbox, "cd /srv; ls | cat; cat *").stdout == b"\x1b]0;evil\x07\n\x1b[31m"


CASES = (
    nothing_can_be_mounted_or_unmounted,
    no_new_namespace_can_be_made_or_entered,
    keys_of_the_kernel_are_out_of_reach,
    bpf_perf_and_faults_are_out_of_reach,
    the_kernel_cannot_be_changed_or_restarted,
    the_clock_and_the_names_of_the_host_stay,
    devices_cannot_be_made,
    files_cannot_be_opened_by_handle,
    raw_and_foreign_sockets_are_refused,
    nobody_can_be_traced_who_is_less_confined,
    capabilities_are_few_and_cannot_be_won_back,
    priorities_and_limits_cannot_be_raised,
    setuid_programs_give_nothing,
    a_terminal_cannot_be_typed_into,
)
