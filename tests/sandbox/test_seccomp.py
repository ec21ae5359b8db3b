"""What the filter makes of every call: its program is run number by number, here and by the kernel.

That Docker's default profile allows what is allowed here is the matter of `test_docker_seccomp`.
"""

from __future__ import annotations

import os
import signal
import struct

import pytest

from sandbox.warden import seccomp, syscalls
from sandbox.warden.kernel import MACHINE
from tests.sandbox.conformance import Bench, out, sh

_MACHINES = {"x86_64": ("amd64", 0xC000003E), "aarch64": ("arm64", 0xC00000B7)}
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS = 0x00050001, 0x00050026
_NAMESPACES = os.CLONE_NEWNS | os.CLONE_NEWUTS | os.CLONE_NEWIPC | os.CLONE_NEWUSER
_NAMESPACES |= os.CLONE_NEWPID | os.CLONE_NEWNET | os.CLONE_NEWCGROUP
_PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
# Numbers that mean nothing on a machine.
_HOLES = {
    "x86_64": {*range(336, 424)},
    "aarch64": {*range(244, 260), *range(295, 424)},
}

# Calls of these kernels that Docker does not allow, or that we allow less, with their numbers.
_DENIED = """
_sysctl:156/- acct:163/89 add_key:248/217 adjtimex:159/171 afs_syscall:183/- bpf:321/280
clock_adjtime:305/266 clock_settime:227/112 clone3:435/435 create_module:174/-
delete_module:176/106 fanotify_init:300/262 file_getattr:468/468 file_setattr:469/469
finit_module:313/273 fsconfig:431/431 fsmount:432/432 fsopen:430/430 fspick:433/433
get_kernel_syms:177/- get_mempolicy:239/236 getpmsg:181/- init_module:175/105
io_uring_enter:426/426 io_uring_register:427/427 io_uring_setup:425/425 ioperm:173/- iopl:172/-
kcmp:312/272 kexec_file_load:320/294 kexec_load:246/104 keyctl:250/219 lookup_dcookie:212/18
lsm_get_self_attr:459/459 lsm_list_modules:461/461 lsm_set_self_attr:460/460 mbind:237/235
migrate_pages:256/238 modify_ldt:154/- mount:165/40 mount_setattr:442/442 move_mount:429/429
move_pages:279/239 nfsservctl:180/42 open_by_handle_at:304/265 open_tree:428/428
open_tree_attr:467/467 perf_event_open:298/241 pidfd_getfd:438/438 pivot_root:155/41
process_madvise:440/440 putpmsg:182/- query_module:178/- quotactl:179/60 quotactl_fd:443/443
reboot:169/142 request_key:249/218 security:185/- set_mempolicy:238/237
set_mempolicy_home_node:450/450 setdomainname:171/162 sethostname:170/161 setns:308/268
settimeofday:164/170 swapoff:168/225 swapon:167/224 sysfs:139/- syslog:103/116 tuxcall:184/-
umount2:166/39 unshare:272/97 uselib:134/- userfaultfd:323/282 ustat:136/- vhangup:153/58
vserver:236/-
"""


def run(program: bytes, number: int, arguments: tuple[int, ...] = (), arch: int = 0) -> int:
    """What the kernel would make of a call: the few instructions that our programs use."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *arguments, *(0,) * (6 - len(arguments)))
    ops = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    value, at = 0, 0
    while True:
        code, yes, no, k = ops[at]
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            value = struct.unpack_from("=I", data, k)[0]
            continue
        is_true = {0x15: value == k, 0x25: value > k, 0x35: value >= k, 0x45: bool(value & k)}[code]
        at += yes if is_true else no


class Filter:
    """Our program for one machine."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self.arch = _MACHINES[machine][1]
        self.program = bytes(seccomp.deny_program(machine=machine))

    def __call__(self, name_or_number: str | int, *arguments: int) -> int:
        number = name_or_number
        if isinstance(number, str):
            found = seccomp.number_of(number, self.machine)
            assert found is not None
            number = found
        return run(self.program, number, arguments, self.arch)


@pytest.fixture(params=list(_MACHINES))
def judge(request: pytest.FixtureRequest) -> Filter:
    return Filter(request.param)


def _numbers(text: str, machine: str) -> dict[str, int]:
    found = {}
    for word in text.split():
        name, _colon, pair = word.partition(":")
        number = pair.split("/")[machine == "aarch64"]
        if number != "-":
            found[name] = int(number)
    return found


def _names(machine: str) -> set[str]:
    """The calls that we allow and the machine has."""
    return {name for name in syscalls.ALLOWED if seccomp.number_of(name, machine) is not None}


def test_what_the_table_allows_is_allowed(judge: Filter) -> None:
    ours = _names(judge.machine)
    assert len(ours) > 250
    assert {judge(name) for name in ours} == {_ALLOW}


def test_every_other_number_is_refused(judge: Filter) -> None:
    known = {seccomp.number_of(name, judge.machine) for name in syscalls.ALLOWED}
    known |= {seccomp.number_of(name, judge.machine) for name in syscalls.JUDGED}
    others = [number for number in range(600) if number not in known]
    assert {judge(number) for number in others if number <= 469} == {_EPERM}
    assert {judge(number) for number in others if number > 469} == {_ENOSYS}


def test_what_docker_denies_is_denied_by_number(judge: Filter) -> None:
    denied = _numbers(_DENIED, judge.machine)
    assert {name for name, number in denied.items() if judge(number) == _ALLOW} == set()
    assert judge(denied["clone3"]) == _ENOSYS


def test_every_number_is_allowed_or_known_not_to_be(judge: Filter) -> None:
    """None is left out by mistake, and no two names have the same number."""
    ours = [seccomp.number_of(name, judge.machine) for name in _names(judge.machine)]
    ours += [seccomp.number_of(name, judge.machine) for name in syscalls.JUDGED]
    denied = _numbers(_DENIED, judge.machine)
    numbers = [*ours, *(number for name, number in denied.items() if name != "clone3")]
    assert len(numbers) == len(set(numbers))
    missing = set(range(syscalls.LAST_KNOWN + 1)) - set(numbers)
    assert missing == _HOLES[judge.machine]


@pytest.mark.parametrize("family", [*range(48), 38 | 1 << 32, 40 | 1 << 32])
def test_sockets_are_judged_by_their_family(judge: Filter, family: int) -> None:
    assert judge("socket", family) == (_EPERM if family & 0xFFFFFFFF in (38, 40) else _ALLOW)


@pytest.mark.parametrize("value", [0, 8, 0x20000, 0x20008, 0xFFFFFFFF, 0x40000, 0x400000, 3])
def test_personalities_are_dockers(judge: Filter, value: int) -> None:
    assert judge("personality", value) == (_ALLOW if value in _PERSONALITIES else _EPERM)


@pytest.mark.parametrize("bit", range(32))
def test_a_clone_makes_no_namespace(judge: Filter, bit: int) -> None:
    flag = 1 << bit
    assert judge("clone", flag | signal.SIGCHLD) == (_EPERM if flag & _NAMESPACES else _ALLOW)


def test_a_terminal_is_not_typed_into(judge: Filter) -> None:
    assert judge("ioctl", 0, 0x5412) == _EPERM
    assert judge("ioctl", 0, 0x541C) == _EPERM
    assert judge("ioctl", 0, 0x5412 | 1 << 32) == _EPERM
    assert judge("ioctl", 0, 0x5413) == _ALLOW


def test_numbers_of_other_architectures_lead_nowhere(judge: Filter) -> None:
    for arch in (0x40000003, 0x40000028, 0xC0000015, 0):
        assert run(judge.program, 1, (), arch) == _KILL
    for number in (0, 1, 56, 165, 520, 545):  # x32
        assert judge(number | 0x40000000) == _ENOSYS
    assert judge(-1) == _ENOSYS


def test_a_pinned_sandbox_stays_on_its_cpus() -> None:
    program = bytes(seccomp.deny_program(is_pinned=True, machine="x86_64"))
    assert run(program, 203, (), 0xC000003E) == 0x00050000
    assert run(program, 204, (), 0xC000003E) == _ALLOW


_TRY = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
for number, *arguments in eval(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    print(errno.errorcode.get(ctypes.get_errno(), "OK") if result < 0 else "OK")
"""


@pytest.mark.bubblewrap
def test_the_kernel_judges_as_the_program_does(bench: Bench) -> None:
    denied = _numbers(_DENIED, MACHINE)
    socket = syscalls.JUDGED["socket"][MACHINE == "aarch64"] or 0
    calls = [[number] for name, number in denied.items() if name != "clone3"]
    calls += [[denied["clone3"]], [socket, 38, 5, 0], [socket, 40, 1, 0], [socket, 1, 1, 0]]
    with bench.start() as sandbox:
        command = ["python3", "-I", "-c", _TRY, repr(calls)]
        said = sandbox.exec(command, timeout_seconds=20).stdout.decode().split()
        assert said == ["EPERM"] * (len(denied) - 1) + ["ENOSYS", "EPERM", "EPERM", "OK"]


@pytest.mark.bubblewrap
def test_the_first_process_can_be_neither_traced_nor_written_to(bench: Bench) -> None:
    program = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())\n"
        "try: open('/proc/1/mem', 'r+b')\n"
        "except PermissionError: print('closed')\n"
    )
    with bench.start() as sandbox:
        assert out(sandbox, f"python3 -I -c {program!r}".replace("\\n", "\n")) == "-1 1\nclosed\n"
        assert sh(sandbox, "grep Seccomp: /proc/1/status").stdout.split() == [b"Seccomp:", b"2"]
        child = "import os; os.execvp('true', ['true'])"
        assert sh(sandbox, f'python3 -I -c "{child}"').exit_status == 0
