"""Never more sandboxes at once than there are places, over threads and processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.slots import Slots

_ROOT = Path(__file__).resolve().parents[2]


def _work(folder: Path, log: Path, count: int) -> None:
    slots = Slots(folder, 2)
    for _ in range(count):
        slot = slots.acquire()
        with log.open("a") as file:
            file.write("+\n")
        time.sleep(0.005)
        with log.open("a") as file:
            file.write("-\n")
        slot.release()


@pytest.mark.slow
def test_threads_and_processes_share_the_places(tmp_path: Path) -> None:
    log = tmp_path / "log"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_work, args=(tmp_path / "slots", log, 6)) for _ in range(2)]
    for process in processes:
        process.start()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _n: _work(tmp_path / "slots", log, 6), range(3)))
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    now, most = 0, 0
    for line in log.read_text().split():
        now += 1 if line == "+" else -1
        most = max(most, now)
    assert (now, most) == (0, 2)


def test_a_killed_holder_gives_its_place_back(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from sandbox.slots import Slots\n"
        "slot = Slots(Path(sys.argv[1]), 1).acquire(); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=_ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    slots = Slots(tmp_path, 1)
    taken: list[float] = []

    def take() -> None:
        slots.acquire().release()
        taken.append(time.monotonic())

    thread = threading.Thread(target=take)
    thread.start()
    time.sleep(0.1)
    assert taken == []
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    thread.join(5)
    assert len(taken) == 1


def test_releasing_twice_releases_once(tmp_path: Path) -> None:
    slots = Slots(tmp_path, 1)
    slot = slots.acquire()
    slot.release()
    other = slots.acquire()
    slot.release()
    assert slots._try_all() is None
    other.release()
