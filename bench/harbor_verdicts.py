"""Whether Harbor says of our environments what we say: a reward for oracle, none for nop.

    export HARBOR=$(.venv/bin/python -m bench.harbor --setup)
    .venv/bin/python -m bench.harbor_verdicts --sample 50
    .venv/bin/python -m bench.harbor_verdicts EXPORTED/my-dataset-v1 --sample 50 --json

Without a folder, children are evolved from the bundled seeds, every one through the gates.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import ways
from bench.cases import AGENTS, SEEDS, BenchError, Case, load_cases
from bench.harbor import NOTE, Harbor, answer_of, find_harbor
from bench.scoring import Rate
from bench.table import table
from bench.verdicts import evolved, seed_of
from evolution.writing import write_bundle
from sandbox.contracts import Outcome, TrialResult
from sandbox.errors import SandboxError
from sandbox.trial import Runner

NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Row:
    """What both said of one environment's trial by one agent."""

    environment: str
    agent: str
    ours: str
    harbor: str

    @property
    def is_same(self) -> bool:
        """Both gave an answer, it is the same one, and it is the one that the agent must get."""
        return self.ours == self.harbor == ("pass" if self.agent == "oracle" else "fail")


def our_answer(result: TrialResult) -> str:
    """`pass`, `fail`, or why there is neither."""
    if result.outcome in (Outcome.PASS, Outcome.FAIL):
        return result.outcome.value
    return f"{NO_ANSWER}: {result.outcome.value} {result.error}"


def harbors_answer(result: dict[str, Any]) -> str:
    """As `our_answer`, of a trial's `result.json`."""
    reward, error = answer_of(result)
    if error or reward is None:
        return f"{NO_ANSWER}: {error or 'no reward'}"
    return "pass" if reward >= 1.0 else "fail"


def sampled(cases: Sequence[Case], count: int) -> list[Case]:
    """So many of them, evenly spread over the list; all when there are no more."""
    if count >= len(cases):
        return list(cases)
    return [cases[place * len(cases) // count] for place in range(count)]


def children(count: int, runner: Runner) -> list[Case]:
    """Children of the bundled seeds, evolved here. Raises BenchError when there are too few."""
    seeds = tuple(seed_of(case) for case in load_cases(SEEDS))
    made = evolved(seeds, count, runner)
    cases = [Case(judged.name.replace("+", "-g"), judged.subject.bundle) for judged in made]
    if len(cases) < count:
        raise BenchError(f"only {len(cases)} children of {count} could be evolved")
    return cases


def compare(harbor: Harbor, cases: Sequence[Case], runner: Runner, at_once: int) -> list[Row]:
    """Both agents on every case, by us and then by Harbor. Raises BenchError."""
    rows = []
    for agent in AGENTS:
        with ThreadPoolExecutor(at_once) as pool:
            found = pool.map(lambda case, a=agent: runner.run(case.trial(a)), cases)
            ours = {case.name: our_answer(one) for case, one in zip(cases, found, strict=True)}
        theirs = {
            Path(one["task_id"]["path"]).name: harbors_answer(one)
            for one in harbor.results(agent, at_once)
        }
        rows += [Row(case.name, agent, ours[case.name], theirs[case.name]) for case in cases]
    return rows


def _cases(asked: argparse.Namespace, runner: Runner) -> list[Case]:
    """What is compared, as it stands in files: read back where it was made here."""
    if asked.folder is not None:
        return sampled(load_cases(asked.folder), asked.sample)
    with tempfile.TemporaryDirectory() as name:
        for case in children(asked.sample, runner):
            write_bundle(case.bundle, Path(name) / case.name)
        return list(load_cases(Path(name)))


def _run(asked: argparse.Namespace) -> list[Row]:
    if asked.sample < 1 or asked.concurrency < 1:
        raise BenchError("--sample and --concurrency are at least 1")
    program = find_harbor(asked.harbor)
    if program is None:
        raise BenchError(f"no Harbor; {sys.executable} -m bench.harbor --setup installs one")
    with ways.opened(asked.backend, asked.home) as backend:
        runner = Runner(backend)
        cases = _cases(asked, runner)
        print(f"{len(cases)} environments; {NOTE}", file=sys.stderr)
        with closing(Harbor(program, cases)) as harbor:
            harbor.build()
            return compare(harbor, cases, runner, asked.concurrency)


def _rate(rows: Sequence[Row]) -> Rate:
    """How many environments have an answer that is not the same, or not the right one."""
    different = {row.environment for row in rows if not row.is_same}
    return Rate(len(different), len({row.environment for row in rows}))


def main() -> int:
    """Compare and print; 1 when any answer is not the same, or is not the right one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="an export, or any tree of bundles")
    parser.add_argument("--sample", type=int, default=50, metavar="N", help="environments (50)")
    parser.add_argument("--concurrency", type=int, default=2, metavar="N", help="at once (2)")
    parser.add_argument("--backend", choices=ways.NAMES, default="bubblewrap", help="of our trials")
    parser.add_argument("--harbor", metavar="PATH", help="Harbor's program; else HARBOR, else PATH")
    parser.add_argument("--home", type=Path, default=ways.default_home(), help="built images")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    try:
        rows = _run(asked)
    except (BenchError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rate = _rate(rows)
    different = [asdict(row) for row in rows if not row.is_same]
    if asked.json:
        print(json.dumps({"trials": len(rows), "differ": rate.as_dict(), "rows": different}))
        return int(bool(different))
    if different:
        print(table(list(different[0]), [list(row.values()) for row in different]))
    print(f"{len(rows)} trials; environments that differ: {rate}")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
