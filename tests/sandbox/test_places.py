"""Places shared by real processes: killed ones, waiting ones, and those that want everything."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.errors import Refused, SandboxUnavailable
from sandbox.machine import Machine
from sandbox.packing import Capacity
from sandbox.place_files import occupancy
from sandbox.places import Place, Places
from sandbox.reaper import reap

_ROOT = Path(__file__).resolve().parents[2]
_MIB = 1024 * 1024

_PROGRAM = """
import os, sys, threading, time
from pathlib import Path
from sandbox.packing import Capacity
from sandbox.places import Places
folder, total, party, cpus, count, mode = sys.argv[1:]
places = Places(Path(folder), capacity=Capacity(float(total), 1 << 30, (0, 1)))

def work():
    place = places.acquire(cpus=float(cpus), party=party)
    if mode == "fork" and os.fork() == 0:
        time.sleep(60)
    os.write(1, f"{party}\\n".encode())
    time.sleep(60 if mode != "pass" else 0.002)
    place.release()

threads = [threading.Thread(target=work) for _ in range(int(count))]
for thread in threads:
    thread.start()
"""


class Crowd:
    """Processes that want places in one folder."""

    def __init__(self, folder: Path, cpus: float = 1.0) -> None:
        self.folder = folder / "a folder with spaces"
        self.cpus = cpus
        self.places = Places(self.folder, capacity=Capacity(cpus, 1 << 30, (0, 1)))
        self.log = folder / "log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, party: str, *, cpus: float = 1.0, count: int = 1, mode: str = "hold"
    ) -> subprocess.Popen[bytes]:
        words = [str(self.folder), str(self.cpus), party, str(cpus), str(count), mode]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *words],
                cwd=_ROOT,
                stdout=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def order(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, occupancy(self.folder)
            time.sleep(0.005)

    def until_waiting(self, count: int) -> None:
        self.until(lambda: len(occupancy(self.folder).waiting) == count)

    def end(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    made = Crowd(tmp_path)
    yield made
    made.end()


def _thread(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_a_killed_holder_gives_its_place_back(crowd: Crowd) -> None:
    process = crowd.start("holder")
    crowd.until(lambda: crowd.order() == ["holder"])
    with pytest.raises(SandboxUnavailable, match="no room"):
        crowd.places.acquire(timeout_seconds=0.3)
    process.kill()
    crowd.places.acquire(timeout_seconds=5).release()


def test_a_forked_child_does_not_keep_the_place_of_its_killed_parent(crowd: Crowd) -> None:
    process = crowd.start("holder", mode="fork")
    crowd.until(lambda: crowd.order() == ["holder"])
    process.kill()
    crowd.places.acquire(timeout_seconds=5).release()


def test_the_reaper_forgets_killed_owners_and_nobody_else(crowd: Crowd) -> None:
    process = crowd.start("holder")
    crowd.until(lambda: crowd.order() == ["holder"])
    process.kill()
    process.wait()
    held = crowd.places.acquire(timeout_seconds=5)
    waiting = crowd.start("dead")
    crowd.until_waiting(1)
    waiting.kill()
    waiting.wait()
    os.mkfifo(crowd.folder / "17.pipe")  # its owner died before it was written down
    home = crowd.folder.rename(crowd.folder.with_name("places")).parent
    crowd.places.folder = home / "places"
    assert reap(home).places == 2
    assert reap(home).places == 0
    assert [entry.pid for entry in occupancy(home / "places").held] == [os.getpid()]
    assert len(list((home / "places").glob("*.pipe"))) == 1
    held.release()


def test_a_killed_waiter_is_passed_over(crowd: Crowd) -> None:
    held = crowd.places.acquire()
    dead = crowd.start("dead")
    crowd.until_waiting(1)
    crowd.start("next", mode="pass")
    crowd.until_waiting(2)
    dead.kill()
    dead.wait()
    crowd.until_waiting(1)
    held.release()
    crowd.until(lambda: crowd.order() == ["next"])


def test_a_party_that_comes_later_gets_every_second_place(crowd: Crowd) -> None:
    held = crowd.places.acquire()
    crowd.start("many", count=20, mode="pass")
    crowd.until_waiting(20)
    crowd.start("few", count=5, mode="pass")
    crowd.until_waiting(25)
    held.release()
    crowd.until(lambda: len(crowd.order()) == 25)
    assert crowd.order()[:10] == ["many", "few"] * 5


def test_a_large_request_is_not_starved_by_small_ones(tmp_path: Path) -> None:
    crowd = Crowd(tmp_path, cpus=2.0)
    try:
        held = crowd.places.acquire(cpus=1)
        crowd.start("large", cpus=2.0, mode="pass")
        crowd.until_waiting(1)
        crowd.start("small", count=5, mode="pass")
        crowd.until_waiting(6)
        time.sleep(0.2)
        assert crowd.order() == [], "one CPU is free and kept for whose turn it is"
        held.release()
        crowd.until(lambda: len(crowd.order()) == 6)
        assert crowd.order()[0] == "large"
    finally:
        crowd.end()


def test_never_more_at_once_than_there_is_room_for(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(2.0, 100 * _MIB, (0, 1)))
    lock, now, most = threading.Lock(), [0.0, 0], [0.0, 0]

    def work(number: int) -> None:
        cpus, memory = (0.5, 10 * _MIB) if number % 2 else (1.0, 60 * _MIB)
        for _ in range(5):
            place = places.acquire(cpus=cpus, memory_bytes=memory, party=str(number % 3))
            with lock:
                now[0], now[1] = now[0] + cpus, now[1] + memory
                most[0], most[1] = max(most[0], now[0]), max(most[1], now[1])
            time.sleep(0.003)
            with lock:
                now[0], now[1] = now[0] - cpus, now[1] - memory
            place.release()

    threads = [_thread(lambda number=number: work(number)) for number in range(8)]  # type: ignore[misc]
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert most[0] <= 2.0
    assert most[1] <= 100 * _MIB
    assert most[0] > 1.0, "they did run beside one another"


def test_what_can_never_be_had_here_is_refused_at_once(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(2.0, 1000 * _MIB, (0, 1)))
    with pytest.raises(Refused, match=r"2\.0 GiB of memory were asked for.* have 1\.0"):
        places.acquire(memory_bytes=2000 * _MIB)
    everything = places.acquire(cpus=64, memory_bytes=1000 * _MIB)
    with pytest.raises(SandboxUnavailable):
        places.acquire(cpus=0.1, timeout_seconds=0.05)
    everything.release()


def test_who_gave_up_waiting_leaves_nothing(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    held = places.acquire()
    with pytest.raises(SandboxUnavailable, match=r"within 0\.05 s"):
        places.acquire(timeout_seconds=0.05)
    assert occupancy(tmp_path).waiting == []
    held.release()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "state.0", "state.1"]


def test_releasing_twice_releases_once(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    first = places.acquire()
    first.release()
    second = places.acquire()
    first.release()
    with pytest.raises(SandboxUnavailable):
        places.acquire(timeout_seconds=0.05)
    second.release()


def test_it_can_be_seen_who_holds_and_who_waits(crowd: Crowd) -> None:
    held = crowd.places.acquire(cpus=1, memory_bytes=7 * _MIB, party="run 7")
    process = crowd.start("other", cpus=0.5)
    crowd.until_waiting(1)
    seen = occupancy(crowd.folder)
    (holder,), (waiter,) = seen.held, seen.waiting
    assert (holder.party, holder.cpus, holder.memory_bytes) == ("run 7", 1.0, 7 * _MIB)
    assert (holder.pid, holder.cpu_set, held.cpu_set) == (os.getpid(), (0,), (0,))
    assert (waiter.party, waiter.cpus, waiter.pid) == ("other", 0.5, process.pid)
    assert 0 <= time.time() - holder.since < 30
    held.release()


def test_a_waiter_is_woken_rather_than_looking(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    seconds = []
    for _ in range(7):
        held, got = places.acquire(), threading.Event()

        def take(got: threading.Event = got) -> None:
            place = places.acquire()
            got.set()
            place.release()

        thread = _thread(take)
        while not occupancy(tmp_path).waiting:
            time.sleep(0.001)
        time.sleep(0.01)
        started = time.monotonic()
        held.release()
        assert got.wait(5)
        seconds.append(time.monotonic() - started)
        thread.join()
    assert min(seconds) < 0.02


def test_many_who_wait_need_next_to_no_cpu(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    held = places.acquire()
    threads = [_thread(lambda: places.acquire().release()) for _ in range(50)]
    while len(occupancy(tmp_path).waiting) < 50:
        time.sleep(0.01)
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.25
    held.release()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_lost_state_does_not_give_one_place_to_two_owners_of_a_number(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    old = places.acquire()
    for name in ("state.0", "state.1"):
        (tmp_path / name).write_text("{")  # as after a loss of power
    new = places.acquire(timeout_seconds=5)
    old.release()
    assert len(occupancy(tmp_path).held) == 1
    new.release()


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    (tmp_path / "lock").mkdir()
    with pytest.raises(SandboxUnavailable, match="folder of places"):
        places.acquire()


def _fake_machine(folder: Path, available: int) -> Machine:
    folder.mkdir(exist_ok=True)
    _set_available(folder, available)
    return Machine(folder, folder / "cgroups")


def _set_available(folder: Path, available: int) -> None:
    new = folder / "new"
    new.write_text(f"MemTotal: 8388608 kB\nMemAvailable: {available // 1024} kB\n")
    new.replace(folder / "meminfo")


def test_another_one_waits_until_the_machine_has_memory_free(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    machine = _fake_machine(proc, 300 * _MIB)
    places = Places(tmp_path / "places", machine=machine)
    held = places.acquire(cpus=0.1, memory_bytes=1000 * _MIB)
    with pytest.raises(SandboxUnavailable, match="no room"):
        places.acquire(cpus=0.1, memory_bytes=1000 * _MIB, timeout_seconds=0.3)
    small = places.acquire(cpus=0.1, memory_bytes=10 * _MIB, timeout_seconds=5)
    taken: list[Place] = []
    thread = _thread(lambda: taken.append(places.acquire(cpus=0.1, memory_bytes=1000 * _MIB)))
    time.sleep(0.2)
    assert taken == []
    _set_available(proc, 2000 * _MIB)
    thread.join(5)
    assert len(taken) == 1
    for place in (held, small, *taken):
        place.release()


def test_another_one_waits_while_everything_waits_for_memory(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    machine = _fake_machine(proc, 4000 * _MIB)
    places = Places(tmp_path / "places", machine=machine)
    (proc / "pressure").mkdir()
    pressure = proc / "pressure" / "memory"
    pressure.write_text("some avg10=60.00 avg60=1 total=1\nfull avg10=45.00 avg60=1 total=1\n")
    held = places.acquire(cpus=0.1)
    with pytest.raises(SandboxUnavailable, match="no room"):
        places.acquire(cpus=0.1, timeout_seconds=0.25)
    pressure.write_text("some avg10=60.00 avg60=1 total=1\nfull avg10=1.00 avg60=1 total=1\n")
    places.acquire(cpus=0.1, timeout_seconds=5).release()
    held.release()


def test_the_pipes_are_pipes(tmp_path: Path) -> None:
    places = Places(tmp_path, capacity=Capacity(1.0, 1, (0,)))
    held = places.acquire()
    (pipe,) = tmp_path.glob("*.pipe")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    held.release()
    assert not pipe.exists()


_LOOP = """
import fcntl, os, sys
from pathlib import Path
from sandbox.packing import Capacity
from sandbox.places import Places
places = Places(Path(sys.argv[1]), capacity=Capacity(1.0, 1 << 30, (0,)))
alone = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
while True:
    place = places.acquire(party=sys.argv[3])
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.write(1, b"two at once\\n")
    os.write(1, b".")
    fcntl.flock(alone, fcntl.LOCK_UN)
    place.release()
"""


@pytest.mark.slow
def test_processes_killed_at_any_moment_leave_one_place_that_works(tmp_path: Path) -> None:
    folder, alone, log = tmp_path / "places", tmp_path / "alone", tmp_path / "log"

    def start(number: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-S", "-c", _LOOP, str(folder), str(alone), str(number % 3)]
        with log.open("ab") as output:
            return subprocess.Popen(words, cwd=_ROOT, stdout=output)

    running = [start(number) for number in range(4)]
    for number in range(40):
        deadline, size = time.monotonic() + 30, log.stat().st_size
        while log.stat().st_size == size:
            assert time.monotonic() < deadline, "nobody gets a place any more"
            time.sleep(0.002)
        time.sleep(0.0037 * (number % 7))
        victim = running.pop(0)
        victim.kill()
        victim.wait()
        running.append(start(number))
    for process in running:
        process.kill()
        process.wait()
    assert b"two" not in log.read_bytes()
    started = time.monotonic()
    Places(folder, capacity=Capacity(1.0, 1 << 30, (0,))).acquire(timeout_seconds=5).release()
    assert time.monotonic() - started < 2
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "state.0", "state.1"]
