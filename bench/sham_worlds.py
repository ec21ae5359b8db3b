"""What shams are made from: a seed that was watched, and pieces that claim something of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from evolution.bundle import Bundle
from evolution.contracts import Demand, FileEdit, Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.operators.registry import OPERATORS
from evolution.sequence import KIND_OF_DIRECTION, Pair, SequenceEdit, apply_edit
from sandbox.contracts import SandboxFile

SOLVE, CHECKS, TEST = "solution/solve.sh", "tests/checks.py", "tests/test.sh"


class NotHere(Exception):
    """This world has no room for this sham. The message is one line."""


@dataclass(frozen=True, slots=True)
class World:
    """A seed whose reference solution was watched: `subject.oracle` is set."""

    name: str
    subject: Subject

    @property
    def bundle(self) -> Bundle:
        """The seed."""
        return self.subject.bundle

    @property
    def outputs(self) -> tuple[SandboxFile, ...]:
        """The files that its solution leaves, told of by a name that no file of the image has."""
        oracle = self.subject.oracle
        state = oracle.result.state if oracle else None
        taken = {file.path.rsplit("/", 1)[-1] for file in self.bundle.folder("environment")}
        said = tuple(
            file
            for file in state or ()
            if (base := file.path.rsplit("/", 1)[-1]) not in taken
            and file.data
            and re.search(rf"[`/]{re.escape(base)}`", self.told)
        )
        if not said:
            raise NotHere("no output is told of by a name of its own")
        return said

    @property
    def inputs(self) -> tuple[tuple[SandboxFile, str], ...]:
        """The files of the image that its solution reads: each with its path in the sandbox."""
        oracle = self.subject.oracle
        trace = oracle.result.trace if oracle else None
        if trace is None:
            raise NotHere("its solution was not traced")
        read = [path for path in trace.read if path.startswith("/app/")]
        files = (f for f in self.bundle.files if f.path.startswith("environment/"))
        return tuple(
            (file, path)
            for file in files
            for path in read
            if len(file.data) > 40 and f"/{file.path}".endswith(path.removeprefix("/app"))
        )

    @property
    def told(self) -> str:
        """The instruction."""
        return self.bundle.instruction

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of its checks."""
        oracle = self.subject.oracle
        return tuple(check.name for check in oracle.result.checks) if oracle else ()


Sham = Callable[[World, int], Mutation]


def claim(
    world: World,
    name: str,
    child: Bundle,
    *,
    naive: Bundle,
    control: Bundle,
    checks: tuple[str, ...],
    premise: tuple[str, ...] = (),
    effect: Effect = Effect.SOLUTION,
    direction: Direction = Direction.SKILL,
    facts: tuple[tuple[str, str], ...] = (),
) -> Mutation:
    """A mutation that says all that a real one says."""
    edit = edit_for(world, direction, name)
    omit = tuple(
        FileEdit(file.path, naive.by_path.get(file.path))
        for file in child.files
        if file.path.startswith("solution/") and naive.by_path.get(file.path) != file
    )
    demand = Demand(
        id=name,
        operator=name,
        direction=direction,
        aspect=Aspect.CONSTRAINTS,
        effect=effect,
        notch=1,
        title=name.replace("_", " "),
        why="because more is asked for",
        statement=Statement(requirement="more is asked for"),
        checks=checks,
        premise=premise,
        omit=omit,
        facts=facts,
    )
    return Mutation(
        child=child,
        demand=demand,
        edit=edit,
        sequence=apply_edit(world.subject.sequence, edit),
        adaptation=tuple(one.path for one in omit),
        naive=naive.folder("solution"),
        control=control,
    )


def edit_for(world: World, direction: Direction, name: str) -> SequenceEdit:
    """An edit of the sequence that fits the direction, in words of its own."""
    first = world.subject.sequence[0]
    pair = {
        Direction.SCENARIO: Pair(f"situation of {name}", first.skill),
        Direction.SKILL: Pair(first.scenario, f"skill of {name}"),
        Direction.LENGTH: Pair(f"situation of {name}", f"skill of {name}"),
    }[direction]
    return SequenceEdit(KIND_OF_DIRECTION[direction], 0, pair)


# -- pieces ---------------------------------------------------------------------------------------


def told(world: World, text: str) -> SandboxFile:
    """The instruction with one more paragraph."""
    return SandboxFile("instruction.md", f"{world.told.rstrip()}\n\n{text}\n".encode())


def script(bundle: Bundle, path: str, *, first: str = "", last: str = "") -> SandboxFile:
    """A script with lines put after its first line, and at its end."""
    file = bundle.by_path[path]
    head, _, rest = file.data.decode().partition("\n")
    return replace(file, data=f"{head}\n{first}{rest.rstrip()}\n{last}".encode())


def checked(world: World, text: str) -> SandboxFile:
    """The checks with more of them at the end."""
    file = world.bundle.by_path[CHECKS]
    return replace(file, data=file.data + f"\n\n{text}".encode())


def pick[T](things: Iterable[T], number: int) -> T:
    """One of them by number, round and round. Raises NotHere when there is none."""
    known = tuple(things)
    if not known:
        raise NotHere("nothing to choose from")
    return known[number % len(known)]


def real_step(world: World, number: int, effects: frozenset[Effect] = frozenset()) -> Mutation:
    """What a real operator makes of this world, which is no sham."""
    fitting = [
        one
        for one in OPERATORS
        if (not effects or one.effect in effects) and one.applies_to(world.subject) is None
    ]
    operator = pick(fitting, number)
    try:
        return operator.apply(world.subject, 1, random.Random(number))
    except ValueError as error:
        raise NotHere(str(error)) from error
