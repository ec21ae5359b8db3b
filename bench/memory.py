"""Does the memory of the process that drives trials stay flat?"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import ways
from bench.cases import BenchError, Case, wrong_result
from bench.table import table
from sandbox.base import Backend
from sandbox.trial import Runner

SAMPLES = 10
ALLOWED_KIB = 8 * 1024
"""Growth over the whole run that counts as flat, in KiB: caches and the allocator's own habits."""


def resident_kib(pid: int | str = "self") -> int:
    """Resident memory of a process in KiB; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def children_kib() -> int:
    """Resident memory of our direct children together, in KiB."""
    total = 0
    for folder in Path("/proc/self/task").iterdir():
        pids = (folder / "children").read_text().split()
        total += sum(resident_kib(pid) for pid in pids)
    return total


def slope(samples: Sequence[tuple[int, int]]) -> float:
    """KiB per thousand trials by least squares, the first sample (caches fill) left out."""
    kept = samples[1:]
    if len(kept) < 2:
        return 0.0
    line = statistics.linear_regression([n for n, _ in kept], [kib for _, kib in kept])
    return 1000 * line.slope


def watch(options: argparse.Namespace, cases: Sequence[Case], say: Callable[[str], None]) -> int:
    """Run `options.trials` trials per back-end; exit status 1 when memory grows."""
    verdicts = []
    for name in options.backends or ways.NAMES:
        with ways.opened(name, options.home) as backend:
            samples, helpers = sample(backend, cases, options.trials, max(options.concurrency))
        grown = slope(samples) * options.trials / 1000
        is_flat = grown <= ALLOWED_KIB
        rows = [[n, kib, other] for (n, kib), (_, other) in zip(samples, helpers, strict=True)]
        say(f"\n{name}:\n" + table(["trials", "driver KiB", "helpers KiB"], rows))
        verdict = "flat" if is_flat else "GROWS"
        say(
            f"{verdict}: {slope(samples):+.0f} KiB per 1,000 trials after the first {samples[1][0]}"
        )
        verdicts.append({"backend": name, "is_flat": is_flat, "samples": samples})
    if options.json:
        print(json.dumps({"memory": verdicts}))
    return 0 if all(verdict["is_flat"] for verdict in verdicts) else 1


def sample(
    backend: Backend, cases: Sequence[Case], trials: int, concurrency: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Memory of the driver and of its helper processes, after every tenth of the trials.

    Raises BenchError when a trial came out wrong.
    """
    runner = Runner(backend)
    own, helpers = [(0, resident_kib())], [(0, children_kib())]
    endless = itertools.cycle(cases)
    lock = threading.Lock()

    def one(_number: int) -> None:
        with lock:
            case = next(endless)
        result = runner.run(case.trial("oracle"))
        if problem := wrong_result("oracle", result):
            raise BenchError(f"{case.name}: {problem}")

    done = 0
    while done < trials:
        step = min(max(1, trials // SAMPLES), trials - done)
        with ThreadPoolExecutor(concurrency) as pool:
            list(pool.map(one, range(step)))
        done += step
        own.append((done, resident_kib(os.getpid())))
        helpers.append((done, children_kib()))
    return own, helpers
