"""A world without sandboxes in which whole evolution steps take milliseconds.

Work is a list of words: `echo WORD` lines of solve.sh say which are written, `tests/required.txt`
says which line has to be where. What a trial comes to follows from its files alone, by the rules
below; anything else is refused by name.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evolution.bundle import Bundle
from evolution.contracts import Demand, FileEdit, Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.operators.base import Operator
from evolution.sequence import KIND_OF_DIRECTION, EditKind, Pair, SequenceEdit, apply_edit
from sandbox.contracts import (
    CheckResult,
    Image,
    ImageSpec,
    Outcome,
    SandboxFile,
    SolverEnd,
    Trace,
    TrialResult,
    TrialSpec,
    Usage,
)
from tests.evolution.sample_bundles import sample_bundle

WORK = "/app/out/work.txt"
FIRST = [f"word-{number}" for number in range(11, 31)]


def toy_bundle(words: list[str] | None = None) -> Bundle:
    """A bundle of that world."""
    wanted = words or FIRST
    return sample_bundle(
        SandboxFile("tests/required.txt", "".join(f"{word}\n" for word in wanted).encode()),
        SandboxFile("solution/solve.sh", solve(wanted).encode(), 0o755),
        SandboxFile("instruction.md", f"Write {len(wanted)} words.\n".encode()),
    )


def solve(words: list[str]) -> str:
    """A solution that writes these words."""
    return "#!/bin/bash\n" + "".join(f"echo {word} >> {WORK}\n" for word in words)


def toy_subject(words: list[str] | None = None) -> Subject:
    """That bundle as a seed."""
    bundle = toy_bundle(words)
    pairs = (Pair("an empty file", "writing words"), Pair("words", "checking words"))
    return Subject(bundle, pairs, (), bundle.instruction, generation=0)


@dataclass
class ToyRunner:
    """Judges by the rules of that world.

    `faults`: how many trials of a solver (by name) end in broken machinery before one gives a
    result. `verdicts`: outcomes that a solver's trials get whatever they did. `ends`: how their
    solver phase ends.
    """

    faults: dict[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, Outcome] = field(default_factory=dict)
    ends: Mapping[str, SolverEnd] = field(default_factory=dict)
    trials: list[TrialSpec] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, spec: ImageSpec) -> Image:
        """Every image builds."""
        return Image(spec.digest, "toy", "toy", "/app")

    def run(self, spec: TrialSpec) -> TrialResult:
        """One trial."""
        with self._lock:
            self.trials.append(spec)
            if self.faults.get(spec.solver.name, 0) > 0:
                self.faults[spec.solver.name] -= 1
                return TrialResult(Outcome.INFRA_ERROR, error="the toy is broken", sandboxes=1)
        state = spec.state if spec.state is not None else _work(spec)
        found = b"".join(file.data for file in state if file.path == WORK).decode().split("\n")
        required = _file(spec.verifier.files, "required.txt").split()
        checks = tuple(
            CheckResult(f"line-{at}", "passed" if found[at : at + 1] == [word] else "failed")
            for at, word in enumerate(required)
        )
        is_passed = all(check.is_passed for check in checks)
        outcome = Outcome.PASS if is_passed else Outcome.FAIL
        outcome = self.verdicts.get(spec.solver.name, outcome)
        is_graded = outcome in (Outcome.PASS, Outcome.FAIL)
        return TrialResult(
            outcome,
            rewards=(("reward", float(outcome is Outcome.PASS)),) if is_graded else (),
            solver_end=self.ends.get(spec.solver.name, SolverEnd.DONE),
            solver_exit_status=0,
            checks=checks,
            phases=(("solver", 0.01),),
            usage=Usage(peak_memory_bytes=1_000_000, peak_processes=2),
            state=state if spec.keep_state else None,
            state_digest="",
            trace=Trace(written=(WORK,)) if spec.is_traced else None,
            backend="toy",
            sandboxes=2,
            seconds=0.02,
        )


def _work(spec: TrialSpec) -> tuple[SandboxFile, ...]:
    if spec.solver.command is None:
        return ()
    if spec.solver.command != "/solution/solve.sh":
        raise AssertionError(f"the toy world cannot run {spec.solver.command!r}")
    words = re.findall(rf"(?m)^echo (\S+) >> {WORK}$", _file(spec.solver.files, "solve.sh"))
    return (SandboxFile(WORK, "".join(f"{word}\n" for word in words).encode()),)


def _file(files: tuple[SandboxFile, ...], path: str) -> str:
    return next(file.data.decode() for file in files if file.path == path)


class MoreWords(Operator):
    """Demands one more word at the end; by `flaw` it is built wrongly below a notch."""

    effect = Effect.SOLUTION
    aspect = Aspect.CONSTRAINTS
    title = "One more word"

    def __init__(self, name: str, direction: Direction, *, works_from: int = 1) -> None:
        self.name = name  # type: ignore[misc]
        self.direction = direction  # type: ignore[misc]
        self.works_from = works_from

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses a second use."""
        live = any(demand.operator == self.name for demand in subject.demands)
        return "is already met" if live else None

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """The child; below `works_from` its tests do not ask for the word."""
        bundle = subject.bundle
        word = f"{self.name}-{rng.randint(100, 999)}-{notch}"
        asked = bundle.text("tests/required.txt").split()
        number = len(asked)
        line = f"echo {word} >> {WORK}\n"
        whole = bundle.text("solution/solve.sh") + line
        if notch >= self.works_from:
            asked.append(word)
        child = bundle.with_files(
            [
                SandboxFile("tests/required.txt", "".join(f"{one}\n" for one in asked).encode()),
                SandboxFile("solution/solve.sh", whole.encode(), 0o755),
                SandboxFile("instruction.md", f"Write {number + 1} words, {notch}.\n".encode()),
            ]
        )
        if self.direction is Direction.SCENARIO:
            child = child.with_files([SandboxFile("environment/word.txt", f"{word}\n".encode())])
        index = 0 if self.direction is not Direction.LENGTH else len(subject.sequence)
        edit = SequenceEdit(KIND_OF_DIRECTION[self.direction], index, self._pair(subject, word))
        demand = Demand(
            id=self.name,
            operator=self.name,
            direction=self.direction,
            aspect=self.aspect,
            effect=self.effect,
            notch=notch,
            title=self.title,
            why="one word more to think of",
            statement=Statement(requirement=f"the word {word}"),
            checks=(f"line-{number}",),
            omit=(FileEdit("solution/solve.sh", bundle.by_path["solution/solve.sh"]),),
        )
        return Mutation(
            child=child,
            demand=demand,
            edit=edit,
            sequence=apply_edit(subject.sequence, edit),
            adaptation=("solution/solve.sh",),
            naive=bundle.folder("solution"),
            control=child.with_files([bundle.by_path["tests/required.txt"]]),
        )

    def _pair(self, subject: Subject, word: str) -> Pair:
        old = subject.sequence[0]
        kind = KIND_OF_DIRECTION[self.direction]
        if kind is EditKind.REPLACE_SCENARIO:
            return replace(old, scenario=f"with {word}")
        return replace(old, skill=f"writing {word}")


def three_operators(**works_from: int) -> tuple[MoreWords, ...]:
    """One operator per direction, named like it; `works_from` by name."""
    return tuple(
        MoreWords(direction.value, direction, works_from=works_from.get(direction.value, 1))
        for direction in Direction
    )
