"""Which steps that only look harder do the gates refuse?

    .venv/bin/python bench/shams.py                 all kinds, 20 of each, and as many honest ones
    .venv/bin/python bench/shams.py --kinds clerical,rename_only --instances 4 --json

Every sham is put before the gates as a candidate of a step. It is refused when a blocking gate
fails. One that no gate answers for certain is a miss; one whose own solution fails, or whose image
does not build, says nothing and is an error of this program (exit status 1).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import ways
from bench.cases import SEEDS, BenchError, load_cases
from bench.scoring import Rate
from bench.sham_kinds import KINDS, honest
from bench.sham_worlds import NotHere, Sham, World
from bench.table import table
from evolution.bundle import Bundle
from evolution.contracts import GateStatus, Mutation, StepConfig, Subject, Verdict
from evolution.engine import observe_oracle
from evolution.gates.case import candidate
from evolution.gates.protocol import verify
from evolution.memory import MemoryLog
from evolution.sequence import Pair, assumed_sequence
from sandbox.base import TrialRunner
from sandbox.errors import SandboxError
from sandbox.trial import Runner

CONFIG = StepConfig(seed=5, oracle_runs=1, nop_runs=1)
HONEST = "honest"
VOID = frozenset({"format", "build", "oracle", "nop"})
"""Gates that speak of the bundle, not of the claim: a sham that they refuse was badly made."""


@dataclass(slots=True)
class Score:
    """What became of the instances of one kind."""

    kind: str
    instances: int = 0
    refused: int = 0
    gates: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    void: list[str] = field(default_factory=list)

    def count(self, name: str, verdict: Verdict) -> None:
        """Note one verdict."""
        self.instances += 1
        failed = {one.gate: one.reason for one in verdict.failed}
        if failed:
            self.refused += 1
            first = next(iter(failed))
            self.gates[first] += 1
            if first in VOID or (self.kind == HONEST):
                self.void.append(f"{name}: {first}: {failed[first]}")
        elif self.kind != HONEST:
            open_gates = [g.gate for g in verdict.gates if g.status is GateStatus.INCONCLUSIVE]
            self.missed.append(f"{name}: {verdict.status.value} {' '.join(open_gates)}".rstrip())

    @property
    def interval(self) -> tuple[float, float]:
        """The share that was refused: 95 % by Clopper and Pearson."""
        return Rate(self.refused, self.instances).interval

    def row(self) -> list[object]:
        """One line of the table."""
        low, high = self.interval
        by = ", ".join(f"{gate} {n}" for gate, n in self.gates.most_common())
        share = f"{low:.0%} to {high:.0%}"
        return [self.kind, self.instances, self.refused, share, by, len(self.void)]

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        low, high = self.interval
        return {
            "instances": self.instances,
            "refused": self.refused,
            "interval": [round(low, 4), round(high, 4)],
            "gates": dict(self.gates),
            "missed": self.missed,
            "void": self.void,
        }


def as_subject(bundle: Bundle) -> Subject:
    """A bundle as a seed."""
    said = bundle.config.get("metadata", {}).get("ratchet", {}).get("sequence", [])
    pairs = tuple(Pair(one["scenario"], one["skill"]) for one in said)
    return Subject(bundle, pairs or assumed_sequence(bundle.config), (), bundle.instruction, 0)


def watched(name: str, bundle: Bundle, runner: TrialRunner) -> World:
    """A world with its oracle's run. Raises BenchError when that does not pass."""
    subject = as_subject(bundle)
    with ThreadPoolExecutor(1) as pool:
        facts, answer = observe_oracle(subject, runner, MemoryLog(), CONFIG, pool)
    if facts is None:
        raise BenchError(f"{name}: {answer.reason}")
    return World(name, replace(subject, oracle=facts))


def instances(sham: Sham, worlds: Sequence[World]) -> Iterator[tuple[str, World, Mutation]]:
    """Shams of one kind, over all worlds and numbers, for ever; no child comes twice.

    Each world begins with another number, so that few instances see many variants already.
    """
    seen: set[tuple[str, str]] = set()
    for turn in range(200):
        for place, world in enumerate(worlds):
            number = turn + place
            try:
                made = sham(world, number)
            except NotHere:
                continue
            naive = "".join(file.digest for file in made.naive)
            mark = (made.child.digest, naive + made.demand.direction)
            if mark not in seen:
                seen.add(mark)
                yield f"{world.name}#{number}", world, made


def score(kind: str, worlds: Sequence[World], runner: TrialRunner, count: int, jobs: int) -> Score:
    """Put `count` instances of a kind before the gates. Raises BenchError when there are fewer."""
    sham = honest if kind == HONEST else KINDS[kind]
    chosen = list(islice(instances(sham, worlds), count))
    if len(chosen) < count:
        raise BenchError(f"{kind}: these bundles give only {len(chosen)} of {count}")

    def judged(made: tuple[str, World, Mutation]) -> Verdict:
        _, world, mutation = made
        case = candidate(world.subject, mutation, CONFIG)
        return verify(case, runner, MemoryLog(), workers=1)

    result = Score(kind)
    with ThreadPoolExecutor(jobs) as pool:
        for (name, _, _), verdict in zip(chosen, pool.map(judged, chosen), strict=True):
            result.count(name, verdict)
    return result


def report(scores: Sequence[Score]) -> str:
    """The table, then everything that has to be looked at."""
    head = ["kind", "instances", "refused", "95 %", "first refused by", "void"]
    lines = [table(head, [one.row() for one in scores])]
    for one in scores:
        lines += [f"slipped through: {one.kind}: {said}" for said in one.missed]
        lines += [f"says nothing: {one.kind}: {said}" for said in one.void]
    return "\n".join(lines)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=Path, default=SEEDS, metavar="FOLDER", help="bundles (the bundled ones)")
    add("--kinds", default=",".join((*KINDS, HONEST)), help="names, joined by commas (all)")
    add("--instances", type=int, default=20, metavar="N", help="of each kind (20)")
    add("--jobs", type=int, default=2, metavar="N", help="verifications at once (2)")
    add("--home", type=Path, default=None, metavar="FOLDER", help="where built images are kept")
    add("--json", action="store_true", help="one JSON object on stdout, all else on stderr")
    options = parser.parse_args(arguments)
    options.kinds = tuple(options.kinds.split(","))
    if unknown := sorted(set(options.kinds) - {*KINDS, HONEST}):
        parser.error(f"no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    options.home = (options.home or ways.default_home()).absolute()
    return options


def measured(options: argparse.Namespace, say: Callable[[str], None]) -> list[Score]:
    """All scores. Raises BenchError and SandboxError."""
    with ways.opened("bubblewrap", options.home) as backend:
        runner = Runner(backend)
        worlds = [watched(c.name, c.bundle, runner) for c in load_cases(options.seeds)]
        scores = []
        for kind in options.kinds:
            scores.append(score(kind, worlds, runner, options.instances, options.jobs))
            say(f"{kind}: {scores[-1].refused} of {scores[-1].instances} refused")
    return scores


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status is 1 where an instance says nothing, or nothing could be measured."""
    options = parsed(arguments)
    aside = sys.stderr if options.json else sys.stdout
    try:
        scores = measured(options, lambda text: print(text, file=aside, flush=True))
    except (BenchError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(report(scores), file=aside)
    if options.json:
        print(json.dumps({"kinds": {one.kind: one.as_json() for one in scores}}))
    return 1 if any(one.void for one in scores) else 0


if __name__ == "__main__":
    sys.exit(main())
