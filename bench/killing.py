"""Kills a process that runs trials, with everything below it, and looks at what stays behind."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench import leftovers, processes, ways
from bench.cases import ROOT, BenchError, load_cases
from sandbox.reaper import owner_label
from sandbox.trial import Runner

SETTLE_SECONDS = 20.0
"""How long the kernel and the engine may take to end what was killed."""


def kill_all(
    backend: str,
    home: Path,
    seeds: Path,
    *,
    times: int,
    seed: int,
    is_alone: bool,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Kill so many times; what was left behind each time, by kind.

    With `is_alone` any difference counts; otherwise what bears a mark of the killed process.
    Raises BenchError when the trials did not even start.
    """
    chance = random.Random(seed)
    killed = []
    for number in range(times):
        before = leftovers.look(home)
        driver = _start(backend, home, seeds)
        label = owner_label(driver.pid)
        time.sleep(chance.uniform(0.0, 1.5))
        bearing = leftovers.marks_of(leftovers.containers_of(label))
        held = leftovers.look(home).beyond(before, [label, *bearing])
        count = _kill_tree(driver.pid, chance)
        driver.wait()
        marks = [] if is_alone else [label, *bearing]
        left = _left_after_one_pass(backend, home, before, marks)
        killed.append({"processes": count, "held": _counts(held), "left": left})
        what = left or "nothing"
        say(f"kill {number + 1}: {count} processes, it held {_counts(held)}; left: {what}")
    return killed


def drive(backend: str, home: Path, seeds: Path) -> None:
    """Run trials, two at once, until killed; say a line after the first one. The child's part."""
    cases = load_cases(seeds)
    with ways.opened(backend, home) as opened:
        runner = Runner(opened)
        for case in cases:
            opened.prepare(case.trial("oracle").image)
        runner.run(cases[0].trial("oracle"))
        print("ready", flush=True)

        def forever(first: int) -> None:
            for case in itertools.islice(itertools.cycle(cases), first, None):
                runner.run(case.trial("oracle"))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(forever, range(2)))


def _start(backend: str, home: Path, seeds: Path) -> subprocess.Popen[str]:
    code = "import sys; from bench.killing import drive_from; drive_from(sys.argv[1:])"
    driver = subprocess.Popen(
        [sys.executable, "-c", code, backend, str(home), str(seeds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert driver.stdout is not None
    if driver.stdout.readline() != "ready\n":
        driver.kill()
        raise BenchError("the process that should run trials did not start")
    return driver


def drive_from(arguments: list[str]) -> None:
    """`drive`, from a command line."""
    backend, home, seeds = arguments
    drive(backend, Path(home), Path(seeds))


def _kill_tree(top: int, chance: random.Random) -> int:
    """`kill -9` a process and all below it, in any order; how many there were."""
    tree = processes.tree_below(top)
    chance.shuffle(tree)
    for pid in tree:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(tree)


def _left_after_one_pass(
    backend: str, home: Path, before: leftovers.Held, marks: list[str]
) -> dict[str, list[str]]:
    code = "import sys; from bench.killing import reap_from; reap_from(sys.argv[1:])"
    subprocess.run([sys.executable, "-c", code, backend, str(home)], cwd=ROOT, check=True)
    end = time.monotonic() + SETTLE_SECONDS
    while (left := leftovers.look(home).beyond(before, marks)) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def reap_from(arguments: list[str]) -> None:
    """One pass of the reaper, in a process of its own."""
    backend, home = arguments
    ways.reap(backend, Path(home))


def _counts(held: dict[str, list[str]]) -> dict[str, int]:
    return {kind: len(lines) for kind, lines in held.items()}
