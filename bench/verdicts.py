"""Whether every way to run sandboxes gives the same verdicts, down to the single trial.

    .venv/bin/python bench/verdicts.py --children 50

The seeds are evolved in this process (on the first back-end, which verifies them on the way), and
all of them, seeds and children, are verified again on each of the others. Compared are the verdict,
every gate's answer, and what all trials said: outcome, rewards and failed checks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import ways
from bench.cases import SEEDS, Case, load_cases
from bench.table import table
from evolution.authors.procedural import ProceduralAuthor
from evolution.contracts import Mutation, StepConfig, Subject, Verdict
from evolution.engine import evolve_step
from evolution.gates.protocol import verify_bundle
from evolution.memory import MemoryJournal, MemoryLog
from evolution.sequence import Pair
from sandbox.base import TrialRunner
from sandbox.contracts import TrialResult
from sandbox.trial import Runner

Told = tuple[str, tuple[tuple[str, float], ...], tuple[str, ...]]
"""What a trial says: its outcome, its rewards, its failed checks."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An environment, and where it comes from."""

    name: str
    subject: Subject
    mutation: Mutation | None = None
    parent: Subject | None = None


@dataclass(slots=True)
class Answers:
    """What one back-end said of one environment."""

    verdict: str
    gates: dict[str, str]
    trials: Counter[tuple[str, *Told]] = field(default_factory=Counter)
    """How many trials of a solver said what; a mutant's own key holds a measured time-out."""
    reasons: tuple[str, ...] = ()


def seed_of(case: Case) -> Judged:
    """A bundle as a seed."""
    pairs = case.bundle.config["metadata"]["ratchet"]["sequence"]
    sequence = tuple(Pair(pair["scenario"], pair["skill"]) for pair in pairs)
    subject = Subject(case.bundle, sequence, (), case.bundle.instruction, generation=0)
    return Judged(case.name, subject)


def evolved(seeds: tuple[Judged, ...], count: int, runner: TrialRunner) -> Iterator[Judged]:
    """`count` children of the seeds, lineage by lineage in turn, each of the one before it."""
    newest = list(seeds)
    made = failed = 0
    while made < count and failed < len(seeds):
        failed = 0
        for place, parent in enumerate(newest):
            if made == count:
                return
            config = StepConfig(seed=parent.subject.generation + 1)
            step = evolve_step(parent.subject, ProceduralAuthor(), runner, MemoryJournal(), config)
            attempt = step.accepted
            if attempt is None:
                failed += 1
                continue
            mutation = attempt.mutation
            child = Subject(
                mutation.child,
                mutation.sequence,
                (*parent.subject.demands, mutation.demand),
                parent.subject.root_instruction,
                parent.subject.generation + 1,
            )
            name = f"{seeds[place].name}+{child.generation}"
            newest[place] = Judged(name, child, mutation, parent.subject)
            made += 1
            yield newest[place]


def answers_of(judged: Judged, runner: TrialRunner) -> Answers:
    """Put one environment before all gates."""
    log = MemoryLog()
    verdict = verify_bundle(judged.subject, judged.mutation, runner, log, parent=judged.parent)
    trials = Counter(
        (solver.partition(":")[0], *_told(result))
        for (_key, solver, _n), result in log.results.items()
    )
    return Answers(verdict.status.value, _gates(verdict), trials, _reasons(verdict, log))


def _told(result: TrialResult) -> Told:
    return (result.outcome.value, result.rewards, tuple(sorted(result.failed_checks)))


def _gates(verdict: Verdict) -> dict[str, str]:
    return {answer.gate: answer.status.value for answer in verdict.gates}


def _reasons(verdict: Verdict, log: MemoryLog) -> tuple[str, ...]:
    bad = (f"{g.gate}: {g.reason}" for g in verdict.gates if g.status.value != "passed")
    faults = (f"{solver}: {result.error}" for solver, _n, result in log.faults)
    return (*bad, *faults)


def differences(first: Answers, other: Answers) -> list[str]:
    """What two back-ends see differently, one line each; the verdict first."""
    found = []
    if first.verdict != other.verdict:
        found.append(f"verdict: {first.verdict} / {other.verdict} {'; '.join(other.reasons)}")
    found += [
        f"gate {name}: {first.gates.get(name)} / {other.gates.get(name)}"
        for name in sorted({*first.gates, *other.gates})
        if first.gates.get(name) != other.gates.get(name)
    ]
    found += [f"trial of the first only: {told}" for told in (first.trials - other.trials)]
    found += [f"trial of the other only: {told}" for told in (other.trials - first.trials)]
    return found


def main() -> int:
    """Run, print, and end with 1 when any back-end differs from the first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=Path, default=SEEDS, help="a folder of bundles")
    parser.add_argument("--children", type=int, default=50, help="how many to evolve from them")
    parser.add_argument("--backends", default="bubblewrap,bubblewrap-image,docker")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    names = asked.backends.split(",")
    home = ways.default_home()
    seeds = tuple(seed_of(case) for case in load_cases(asked.seeds))
    rows: list[dict[str, object]] = []
    with ways.opened(names[0], home) as backend:
        first = Runner(backend)
        everything = [*seeds, *evolved(seeds, asked.children, first)]
        known = {judged.name: answers_of(judged, first) for judged in everything}
    for name in names[1:]:
        started = time.monotonic()
        seen: list[tuple[Judged, list[str]]] = []
        with ways.opened(name, home) as backend:
            for judged in everything:
                seen.append(
                    (judged, differences(known[judged.name], answers_of(judged, Runner(backend))))
                )
                for line in seen[-1][1]:
                    print(f"{judged.name} {names[0]} / {name}: {line}", file=sys.stderr)
        rows.append(
            {
                "backend": name,
                "environments": len(everything),
                "trials": sum(known[judged.name].trials.total() for judged in everything),
                "verdicts_differ": sum(any(d.startswith("verdict") for d in ds) for _, ds in seen),
                "gates_differ": sum(d.startswith("gate") for _, ds in seen for d in ds),
                "trials_differ": sum(d.startswith("trial") for _, ds in seen for d in ds),
                "seconds": time.monotonic() - started,
            }
        )
    valid = sum(answers.verdict == "passed" for answers in known.values())
    if asked.json:
        print(json.dumps({"backend": names[0], "valid": valid, "rows": rows}))
    else:
        print(f"{valid} of {len(known)} environments are valid with {names[0]}")
        print(table(list(rows[0]), [list(row.values()) for row in rows]))
    return int(any(row["verdicts_differ"] for row in rows) or valid != len(known))


if __name__ == "__main__":
    sys.exit(main())
