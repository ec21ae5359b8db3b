"""Whether every fault is reported as what it was, and nothing is left behind after a kill.

    .venv/bin/python bench/faults.py --backend docker --trials 2000 --rate 0.01 --seed 1
    .venv/bin/python bench/faults.py --backend bubblewrap --kill-all --times 20

Of the trials (oracle, on the bundled seeds) a share of `--rate` is disturbed by each kind of fault;
all others must pass. `--kill-all` kills a process that runs trials with everything below it, at a
random moment, makes one reaper pass and compares the machine with before. Exit status 1 when
anything is misreported or left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import killing, leftovers, ways
from bench.cases import SEEDS, BenchError, Case, load_cases
from bench.injection import SHARED, Fault, Injector, Plan, misreport, plan, shown
from bench.memory import resident_kib
from bench.proxy import EngineProxy
from bench.table import table
from sandbox.base import Backend
from sandbox.contracts import TrialResult
from sandbox.errors import SandboxError
from sandbox.reaper import owner_label
from sandbox.trial import Runner

UNDISTURBED = "none"
SHOWN_PROBLEMS = 20
ENDED_WITHIN_SECONDS = 30.0
"""No fault may hold a trial up for longer, unless those beside it take half as long unstruck."""


class Turnstile:
    """Many at once, or one alone; who wants to be alone is not overtaken."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Beside others."""
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else is inside."""
        with self._condition:
            self._alone += 1
            self._condition.wait_for(lambda: not self._inside)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._alone -= 1
                self._condition.notify_all()


@dataclass
class Tally:
    """What came out: what was done × as what it was reported, and what is wrong."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    missed: int = 0
    problems: list[str] = field(default_factory=list)
    undisturbed_seconds: list[float] = field(default_factory=list)
    struck_seconds: list[tuple[int, float]] = field(default_factory=list)
    drift: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, number: int, chosen: Plan | None, done: list[str], result: TrialResult) -> None:
        """Take in one trial."""
        if chosen is not None and not done:
            self.missed += 1
        fault = chosen.fault.value if chosen is not None and done else UNDISTURBED
        self.counts[fault, done[0] if done else "", shown(result)] += 1
        if fault == UNDISTURBED:
            self.undisturbed_seconds.append(result.seconds)
        else:
            self.struck_seconds.append((number, result.seconds))
        if problem := misreport(chosen, done, result):
            self.problems.append(f"trial {number}: {problem}")

    def finish(self, drift: dict[str, tuple[int, int]]) -> None:
        """Judge what can be judged at the end only."""
        self.drift = drift
        self.problems += _drifted(drift)
        most = max(ENDED_WITHIN_SECONDS, 2 * max(self.undisturbed_seconds, default=0.0))
        self.problems += [
            f"trial {number}: it took {seconds:.0f} s"
            for number, seconds in self.struck_seconds
            if seconds > most
        ]

    @property
    def is_clean(self) -> bool:
        """Whether everything was reported as what it was."""
        return not self.problems

    def report(self) -> str:
        """Tables and problems for people."""
        rows = [[*key, count] for key, count in sorted(self.counts.items())]
        lines = [table(["fault", "what was done", "reported as", "trials"], rows)]
        if self.missed:
            lines.append(f"{self.missed} faults struck nothing: their trials had ended before")
        lines.append("")
        drift = [[name, *values] for name, values in self.drift.items()]
        lines.append(table(["of the driver", "before", "after"], drift))
        quarter = len(self.undisturbed_seconds) // 4
        if quarter:
            first = statistics.fmean(self.undisturbed_seconds[:quarter])
            last = statistics.fmean(self.undisturbed_seconds[-quarter:])
            lines.append(f"undisturbed trials: first quarter {first:.3f} s, last {last:.3f} s")
        lines += [f"MISREPORTED {problem}" for problem in self.problems[:SHOWN_PROBLEMS]]
        if len(self.problems) > SHOWN_PROBLEMS:
            lines.append(f"… and {len(self.problems) - SHOWN_PROBLEMS} more")
        return "\n".join(lines)

    def as_json(self) -> dict[str, object]:
        """The same for machines."""
        faults: dict[str, dict[str, int]] = {}
        for (fault, _done, reported), count in self.counts.items():
            line = faults.setdefault(fault, {})
            line[reported] = line.get(reported, 0) + count
        return {
            "trials": sum(self.counts.values()),
            "faults": faults,
            "missed": self.missed,
            "misreported": self.problems,
            "drift": {name: list(values) for name, values in self.drift.items()},
        }


def run_faulty(
    backend: Backend,
    cases: Sequence[Case],
    proxy: EngineProxy | None,
    *,
    trials: int,
    rate: float,
    seed: int,
    concurrency: int = 2,
) -> Tally:
    """Run trials, a share of `rate` disturbed by each kind of fault."""
    runner, injector, turnstile, tally = Runner(backend), Injector(proxy), Turnstile(), Tally()
    chance = random.Random(seed)
    lock = threading.Lock()

    def one(number: int) -> None:
        with lock:
            spec = cases[number % len(cases)].trial("oracle")
            point = int(chance.random() / rate) if rate else len(Fault)
            fault = list(Fault)[point] if point < len(Fault) else None
            chosen = plan(fault, spec, chance, number) if fault is not None else None
        done: list[str] = []
        with turnstile.alone() if fault in SHARED else turnstile.shared():
            if chosen is None:
                result = runner.run(spec)
            else:
                with injector.during(chosen) as done:
                    result = runner.run(chosen.spec)
        with lock:
            tally.add(number, chosen, done, result)

    for case in cases:
        backend.prepare(case.trial("oracle").image)
    runner.run(cases[0].trial("oracle"))  # helper processes, connections
    before = _own_state(proxy)
    with ThreadPoolExecutor(concurrency) as pool:
        list(pool.map(one, range(trials)))
    after = _own_state(proxy)
    tally.finish({name: (before[name], after[name]) for name in before})
    return tally


def _own_state(proxy: EngineProxy | None) -> dict[str, int]:
    """What a leak would change, while no trial runs; the proxy's own part is taken off."""
    time.sleep(0.2)  # threads of the last trials end
    connections = proxy.connections if proxy is not None else 0
    return {
        "descriptors": len(os.listdir("/proc/self/fd")) - 3 * connections,
        "threads": threading.active_count() - connections,
        "resident KiB": resident_kib(),
        "containers": len(leftovers.containers_of(owner_label(os.getpid()))),
    }


def _drifted(drift: dict[str, tuple[int, int]]) -> list[str]:
    """What grew more than idle connections and helper threads explain."""
    allowed = {
        "descriptors": 32,
        "threads": 8,
        "resident KiB": 64 * 1024,
        "containers": 0,
    }
    return [
        f"drift: {name} went from {first} to {last}"
        for name, (first, last) in drift.items()
        if last - first > allowed[name]
    ]


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--backend", choices=ways.NAMES, default="bubblewrap", help="which (bubblewrap)")
    add("--seeds", type=Path, default=SEEDS, metavar="FOLDER", help="bundles (the bundled ones)")
    add("--trials", type=int, default=2000, metavar="N", help="trials in a row (2000)")
    add("--rate", type=float, default=0.01, metavar="R", help="share of each fault (0.01)")
    add("--seed", type=int, default=1, metavar="S", help="of everything that is left to chance")
    add("--concurrency", type=int, default=2, metavar="N", help="trials at once (2)")
    add("--kill-all", action="store_true", help="kill the driver and all below, then look")
    add("--times", type=int, default=10, metavar="K", help="how often to kill (10)")
    add("--beside-others", action="store_true", help="others use this machine: look at ours only")
    add("--home", type=Path, default=None, metavar="FOLDER", help="where built images are kept")
    add("--json", action="store_true", help="one JSON object on stdout, all else on stderr")
    options = parser.parse_args(arguments)
    options.home = (options.home or ways.default_home()).absolute()
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    options = parsed(arguments)
    aside = sys.stderr if options.json else sys.stdout

    def say(text: str) -> None:
        print(text, file=aside, flush=True)

    try:
        cases = load_cases(options.seeds)
        answer, is_clean = _answer(options, cases, say)
    except (BenchError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(answer))
    return 0 if is_clean else 1


def _answer(
    options: argparse.Namespace, cases: Sequence[Case], say: Callable[[str], None]
) -> tuple[dict[str, object], bool]:
    if options.kill_all:
        killed = killing.kill_all(
            options.backend,
            options.home,
            options.seeds,
            times=options.times,
            seed=options.seed,
            is_alone=not options.beside_others,
            say=say,
        )
        return {"kills": killed}, not any(kill["left"] for kill in killed)
    with ways.opened_behind_proxy(options.backend, options.home) as (backend, proxy):
        tally = run_faulty(
            backend,
            cases,
            proxy,
            trials=options.trials,
            rate=options.rate,
            seed=options.seed,
            concurrency=options.concurrency,
        )
    say(tally.report())
    return tally.as_json(), tally.is_clean


if __name__ == "__main__":
    sys.exit(main())
