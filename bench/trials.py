"""How many trials a minute, and how far from what the same steps must cost.

    .venv/bin/python bench/trials.py                       all back-ends, on the bundled seeds
    .venv/bin/python bench/trials.py --backends docker --concurrency 2 --seeds FOLDER --json
    .venv/bin/python bench/trials.py --backends bubblewrap --trials 2000 --watch-memory

Every back-end runs beside a floor that does a trial's steps with the raw docker SDK or raw bwrap,
block by block in turn; and, where Harbor is (`--harbor`, HARBOR, PATH), against Harbor's local
Docker. A trial with a wrong reward, whoever ran it, ends the measurement with exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import memory, ways
from bench.cases import AGENTS, SEEDS, BenchError, Case, load_cases, wrong_result
from bench.floors import floor_of
from bench.harbor import NOTE, Figures, Harbor, find_harbor
from bench.measuring import Attempt, Attempting, Series, measure, ratio
from bench.table import table
from sandbox.base import Backend
from sandbox.errors import SandboxError
from sandbox.trial import Runner


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the answer. `harbor_ratio` is None without Harbor."""

    backend: str
    agent: str
    concurrency: int
    trials_per_minute: float
    seconds_per_trial: float
    floor_ratio: float
    harbor_ratio: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """A row with what it was made from."""

    row: Row
    ours: Series
    floor: Series
    harbor: Figures | None


def our_way(runner: Runner) -> Attempting:
    """Whole trials by our runner."""

    def attempt(case: Case, agent: str) -> Attempt:
        result = runner.run(case.trial(agent))
        return Attempt(result.seconds, result.phases, wrong_result(agent, result))

    return attempt


class Bench:
    """Measures cell by cell; Harbor's figures are taken once per agent and concurrency."""

    def __init__(
        self, options: argparse.Namespace, cases: Sequence[Case], say: Callable[[str], None]
    ) -> None:
        self.options = options
        self.cases = cases
        self.say = say
        self.harbor: Harbor | None = None
        self.figures: dict[tuple[str, int], Figures] = {}

    def run(self) -> list[Cell]:
        """All cells, as asked for. Raises BenchError, and SandboxError of a named back-end."""
        cells = []
        with ExitStack() as stack:
            program = find_harbor(self.options.harbor)
            if program is not None:
                self.harbor = Harbor(program, self.cases)
                stack.callback(self.harbor.close)
                self.say(f"Harbor: {program}; {NOTE}")
                self.harbor.build()
            for name in self.options.backends or ways.NAMES:
                try:
                    cells += self._measure(name)
                except SandboxError as error:
                    if self.options.backends:
                        raise
                    self.say(f"{name} is left out: {error}")
        if not cells:
            raise BenchError("no back-end can run these bundles here")
        return cells

    def _measure(self, name: str) -> list[Cell]:
        cells = []
        with ExitStack() as stack:
            backend = stack.enter_context(ways.opened(name, self.options.home))
            for case in self.cases:
                self._prepare(backend, case)
            floor = floor_of(backend)
            stack.callback(floor.close)
            for agent in self.options.agents:
                for concurrency in self.options.concurrency:
                    ours = Series("ours", our_way(Runner(backend)))
                    bare = Series("floor", floor)
                    measure(
                        (ours, bare),
                        self.cases,
                        agent,
                        concurrency,
                        trials=self.options.trials,
                        seconds=self.options.seconds,
                    )
                    cells.append(self._cell(name, agent, concurrency, ours, bare))
        return cells

    def _prepare(self, backend: Backend, case: Case) -> None:
        spec = case.trial("oracle")
        for image in filter(None, (spec.image, spec.verifier.image)):
            found = backend.prepare(image)
            if not found.was_cached:
                self.say(f"{backend.name}: built {case.name} in {found.build_seconds:.1f} s")

    def _cell(self, name: str, agent: str, concurrency: int, ours: Series, floor: Series) -> Cell:
        harbor = self._harbor(agent, concurrency)
        row = Row(
            backend=name,
            agent=agent,
            concurrency=concurrency,
            trials_per_minute=round(ours.trials_per_minute, 2),
            seconds_per_trial=round(ours.seconds_per_trial, 4),
            floor_ratio=round(ratio(ours, floor), 3),
            harbor_ratio=(
                round(ours.trials_per_minute / harbor.trials_per_minute, 2) if harbor else None
            ),
        )
        self.say(f"{name}, {agent}, {concurrency} at once: {row.trials_per_minute:g} a minute")
        return Cell(row, ours, floor, harbor)

    def _harbor(self, agent: str, concurrency: int) -> Figures | None:
        if self.harbor is None:
            return None
        key = (agent, concurrency)
        if key not in self.figures:
            self.figures[key] = self.harbor.run(agent, concurrency, self.options.harbor_attempts)
            found = self.figures[key].trials_per_minute
            self.say(f"Harbor, {agent}, {concurrency} at once: {found:.3g} a minute")
        return self.figures[key]


def report(cells: Sequence[Cell]) -> str:
    """The table of ratios, and where the time goes."""
    heads = ["back-end", "agent", "at once", "trials/min", "s/trial", "floor s/trial", "x floor"]
    heads += ["Harbor/min", "x Harbor"]
    rows = [
        [
            cell.row.backend,
            cell.row.agent,
            cell.row.concurrency,
            cell.row.trials_per_minute,
            cell.row.seconds_per_trial,
            cell.floor.seconds_per_trial,
            cell.row.floor_ratio,
            cell.harbor.trials_per_minute if cell.harbor else None,
            cell.row.harbor_ratio,
        ]
        for cell in cells
    ]
    return f"{table(heads, rows)}\n\n{_phases(cells)}"


def _phases(cells: Sequence[Cell]) -> str:
    names: list[str] = []
    for cell in cells:
        names += [name for name in cell.ours.phases() if name not in names]
    rows = []
    for cell in cells:
        ours, floor = cell.ours.phases(), cell.floor.phases()
        head = [cell.row.backend, cell.row.agent, cell.row.concurrency]
        rows.append([*head, "ours", *(_milliseconds(ours.get(name)) for name in names)])
        rows.append([*head, "floor", *(_milliseconds(floor.get(name)) for name in names)])
    return "Milliseconds a trial, by phase:\n" + table(
        ["back-end", "agent", "at once", "", *names], rows
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=Path, default=SEEDS, metavar="FOLDER", help="bundles (the bundled ones)")
    known = ",".join(ways.NAMES)
    add("--backends", type=_words(ways.NAMES), default=(), help=f"{known} (those that work here)")
    add("--agents", type=_words(AGENTS), default=AGENTS, help="oracle,nop")
    add("--concurrency", type=_numbers, default=(1, 2, 4), help="how many at once: 1,2,4")
    add("--trials", type=int, default=33, metavar="N", help="trials per cell, at least (33)")
    add("--seconds", type=float, default=0.0, metavar="S", help="seconds per cell, at least")
    add("--harbor", metavar="PATH", help="Harbor's program; else HARBOR, else on PATH")
    add("--harbor-attempts", type=int, default=1, metavar="N", help="Harbor's passes (1)")
    add("--home", type=Path, default=None, metavar="FOLDER", help="where built images are kept")
    add("--json", action="store_true", help="one JSON object on stdout, all else on stderr")
    add("--watch-memory", action="store_true", help="only: does the driver's memory stay flat?")
    options = parser.parse_args(arguments)
    options.home = (options.home or ways.default_home()).absolute()
    return options


def _words(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        words = tuple(text.split(","))
        if unknown := sorted(set(words) - set(known)):
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return words

    return read


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(word) for word in text.split(","))
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("at least one at a time")
    return numbers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    options = parsed(arguments)
    aside = sys.stderr if options.json else sys.stdout

    def say(text: str) -> None:
        print(text, file=aside, flush=True)

    load = os.getloadavg()[0]
    say(f"load of this machine before: {load:.2f} on {os.cpu_count()} CPUs")
    try:
        cases = load_cases(options.seeds)
        if options.watch_memory:
            return memory.watch(options, cases, say)
        cells = Bench(options, cases, say).run()
    except (BenchError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    say(f"\n{report(cells)}")
    if options.json:
        print(json.dumps({"rows": [asdict(cell.row) for cell in cells]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
