"""Whatever is killed, nothing of a sandbox stays behind; and only ours is ever removed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import Limits, NetworkPolicy
from sandbox.errors import SandboxUnavailable
from sandbox.reaper import SERVER_MARKER, Reaped, group_prefix, is_alive, owner_label, reap
from sandbox.warden.cgroups import Cgroups, own_folders
from tests.sandbox.conformance import Bench, image_spec, out, sh

_ROOT = Path(__file__).resolve().parents[2]


def _eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _processes(text: str) -> list[int]:
    """Ids of living processes whose command line holds a text."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line.replace(b"\0", b" "):
                found.append(int(folder.name))
    return found


def _groups(label: str) -> list[Path]:
    return [
        path
        for folder in set(own_folders().values())
        for path in Path(folder).glob(f"{group_prefix(label)}*")
    ]


_OWNER = """
import pathlib, sys, time
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import Limits, NetworkPolicy
from tests.sandbox.conformance import image_spec
home = pathlib.Path(sys.argv[1])
backend = BubblewrapBackend(home / 'r', home / 'c')
sandbox = backend.start(backend.prepare(image_spec()), Limits(), NetworkPolicy())
sandbox.exec(['bash', '-c', f'setsid sleep {sys.argv[2]} & sleep 0.2'], timeout_seconds=20)
print('ready', flush=True)
sandbox.exec(['bash', '-c', f'trap "" TERM; sleep {sys.argv[2]}; true'], timeout_seconds=600)
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    seconds = f"4{time.time_ns() % 10**9}"
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path), seconds],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process, seconds
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.bubblewrap
def test_an_owner_that_is_killed_leaves_nothing(owner: tuple[subprocess.Popen[str], str]) -> None:
    process, seconds = owner
    label = owner_label(process.pid)
    assert _eventually(lambda: len(_processes(f"sleep {seconds}")) >= 2)
    assert _processes(f"{SERVER_MARKER}{label}")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not is_alive(label)
    assert _eventually(lambda: not _processes(f"sleep {seconds}"))
    assert _eventually(lambda: not _processes(f"{SERVER_MARKER}{label}"))
    assert _eventually(lambda: not _groups(label))


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_wardens_that_are_killed_leave_nothing(owner: tuple[subprocess.Popen[str], str]) -> None:
    process, seconds = owner
    marker = f"{SERVER_MARKER}{owner_label(process.pid)}"
    for pid in _processes(marker):
        os.kill(pid, signal.SIGKILL)
    assert _eventually(lambda: not _processes(f"sleep {seconds}"))
    assert process.wait(10) != 0  # its command was broken off, and it was told


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_stopped_owner_and_a_reaper_do_not_meet(
    owner: tuple[subprocess.Popen[str], str],
) -> None:
    process, seconds = owner
    assert _eventually(lambda: len(_processes(f"sleep {seconds}")) >= 2)
    process.send_signal(signal.SIGSTOP)
    reap()
    assert len(_processes(f"sleep {seconds}")) >= 2
    process.send_signal(signal.SIGCONT)


@pytest.mark.bubblewrap
def test_a_server_that_was_killed_is_started_again(tmp_path: Path) -> None:
    backend = BubblewrapBackend(tmp_path / "r", tmp_path / "c")
    image = backend.prepare(image_spec())
    sandbox = backend.start(image, Limits(), NetworkPolicy())
    process = backend._server._process
    assert process is not None
    process.kill()
    process.wait()
    assert sh(sandbox, "echo lives on").stdout == b"lives on\n"
    with backend.start(image, Limits(), NetworkPolicy()) as other:
        assert out(other, "echo new") == "new\n"
    sandbox.stop()
    backend.close()


@pytest.mark.bubblewrap
def test_a_request_that_a_dying_server_swallowed_is_asked_again(tmp_path: Path) -> None:
    backend = BubblewrapBackend(tmp_path / "r", tmp_path / "c")
    image = backend.prepare(image_spec())
    backend.start(image, Limits(), NetworkPolicy()).stop()
    process = backend._server._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)  # it takes the request, and never reads it
    with ThreadPoolExecutor(2) as threads:
        starting = [
            threads.submit(backend.start, image, Limits(), NetworkPolicy()) for _ in range(2)
        ]
        time.sleep(0.2)
        assert not any(one.done() for one in starting)
        process.kill()
        for one in starting:
            with one.result() as sandbox:
                assert out(sandbox, "echo new") == "new\n"
    backend.close()


@pytest.mark.bubblewrap
def test_a_stopped_sandbox_leaves_no_process_and_no_group(bench: Bench) -> None:
    seconds = f"5{time.time_ns() % 10**9}"
    before = set(_groups(owner_label(os.getpid())))
    with bench.start() as sandbox:
        sh(
            sandbox,
            f"setsid sleep {seconds} & setsid bash -c 'trap \"\" TERM; sleep {seconds}; :' &",
        )
        assert _eventually(lambda: len(_processes(f"sleep {seconds}")) >= 2)
    assert not _processes(f"sleep {seconds}")
    assert _eventually(lambda: set(_groups(owner_label(os.getpid()))) <= before)


@pytest.mark.bubblewrap
def test_a_dead_sandbox_says_so(bench: Bench) -> None:
    sandbox = bench.start()
    seconds = f"6{time.time_ns() % 10**9}"
    sh(sandbox, f"sleep {seconds} &")
    (pid,) = _processes(f"sleep {seconds}")
    first = next(
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and _is_first_beside(folder, pid)
    )
    os.kill(first, signal.SIGKILL)
    with pytest.raises(SandboxUnavailable):
        sh(sandbox, "sleep 5; echo alive")
    sandbox.stop()


def _is_first_beside(folder: Path, pid: int) -> bool:
    try:
        same = os.readlink(folder / "ns/pid") == os.readlink(f"/proc/{pid}/ns/pid")
        status = (folder / "status").read_text()
    except OSError:
        return False
    return (
        same and next(x for x in status.splitlines() if x.startswith("NSpid:")).split()[-1] == "1"
    )


def _dead_label() -> str:
    process = subprocess.Popen(["sleep", "60"])
    label = owner_label(process.pid)
    process.kill()
    process.wait()
    return label


def test_the_reaper_removes_ours_and_leaves_what_is_not(tmp_path: Path) -> None:
    dead, alive = _dead_label(), owner_label(os.getpid())
    groups = tmp_path / "cgroup"
    for name in (f"ratchet-{dead}-1", f"ratchet-{alive}-1", "ratchet-x", "docker", f"{dead}-1"):
        (groups / "memory" / "deep" / name).mkdir(parents=True)
    incoming = tmp_path / "cache" / "ids" / "incoming"
    for name in (f"{dead}-a", f"{alive}-b"):
        (incoming / name / "inside").mkdir(parents=True)
    sleeps = [
        subprocess.Popen(["bash", "-c", "sleep 60; :", mark])
        for mark in (f"{SERVER_MARKER}{dead}", f"{SERVER_MARKER}{alive}", "bystander")
    ]
    try:
        found = reap(tmp_path / "cache", cgroup_root=groups)
        assert found == Reaped(processes=1, cgroups=1, folders=1)
        assert sleeps[0].wait(5) == -signal.SIGKILL
        assert [process.poll() for process in sleeps[1:]] == [None, None]
        assert sorted(path.name for path in (groups / "memory" / "deep").iterdir()) == sorted(
            [f"ratchet-{alive}-1", "ratchet-x", "docker", f"{dead}-1"]
        )
        assert [path.name for path in incoming.iterdir()] == [f"{alive}-b"]
        assert reap(tmp_path / "cache", cgroup_root=groups) == Reaped()
    finally:
        for process in sleeps:
            process.kill()
            process.wait()


@pytest.mark.bubblewrap
def test_owners_in_other_containers_are_left_alone(tmp_path: Path) -> None:
    script = "import os; from sandbox.reaper import owner_label; print(owner_label(os.getpid()))"
    unshare = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    done = subprocess.run(
        [*unshare, sys.executable, "-c", script],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    foreign = done.stdout.strip()
    assert foreign.startswith("1.")
    assert is_alive(foreign)
    (tmp_path / "cgroup" / f"ratchet-{foreign}-1").mkdir(parents=True)
    layer = tmp_path / "cache" / "ids" / "incoming" / f"{foreign}-a"
    layer.mkdir(parents=True)
    server = subprocess.Popen(["bash", "-c", "sleep 60; :", f"{SERVER_MARKER}{foreign}"])
    try:
        assert reap(tmp_path / "cache", cgroup_root=tmp_path / "cgroup") == Reaped()
        assert server.poll() is None
        hours_ago = time.time() - 7200
        os.utime(layer, (hours_ago, hours_ago))  # nobody writes a layer for that long
        assert reap(tmp_path / "cache", cgroup_root=tmp_path / "cgroup") == Reaped(folders=1)
    finally:
        server.kill()
        server.wait()


_DEAF_OWNER = """
import pathlib, signal, sys
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import Limits, NetworkPolicy
from tests.sandbox.conformance import image_spec
home = pathlib.Path(sys.argv[1])
backend = BubblewrapBackend(home / 'r', home / 'c')
with backend.start(backend.prepare(image_spec()), Limits(), NetworkPolicy()) as sandbox:
    for name in ('QUIT', 'USR1', 'USR2'):
        command = ['perl', '-e', 'kill shift, $$; exit 0', name]
        done = sandbox.exec(command, timeout_seconds=20)
        print(done.exit_status)
backend.close()
"""


@pytest.mark.bubblewrap
def test_signals_that_the_owner_ignores_reach_commands(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _DEAF_OWNER, str(tmp_path)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    expected = [128 + number for number in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)]
    assert [int(line) for line in done.stdout.split()] == expected


@pytest.mark.bubblewrap
def test_each_sandbox_of_a_process_has_groups_of_its_own(tmp_path: Path) -> None:
    label = owner_label(os.getpid())
    before = set(_groups(label))
    with contextlib.ExitStack() as stack:
        for name in ("one", "other"):
            backend = BubblewrapBackend(tmp_path / name / "run", tmp_path / name / "cache")
            stack.callback(backend.close)
            image = backend.prepare(image_spec())
            stack.enter_context(backend.start(image, Limits(cpus=0.5), NetworkPolicy()))
        folders = set(Cgroups("ratchet-1.1-").folders.values())
        assert len(set(_groups(label)) - before) == 2 * len(folders)
