"""What two traced runs of reference solutions show of the step between them.

A parent's run and its child's are compared: which files were read, which were left behind, which
skills were used. A step that nothing shows happened on paper only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evolution import execution
from evolution.bundle import Bundle
from evolution.composition import covers
from evolution.difficulty.extraction import trace_skills
from evolution.directions import Direction, Effect
from sandbox.contracts import Trace, TrialResult

_SCRATCH = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/run/", "/logs/", "/root/.")  # noqa: S108
_INTERPRETER = re.compile(r"(ba|da)?sh|python[\d.]*|perl|ruby|node")


@dataclass(frozen=True, slots=True)
class Run:
    """A traced run of a bundle's reference solution."""

    bundle: Bundle
    trace: Trace
    left: dict[str, str]
    """The artifacts that were left, each with the digest of its content."""

    @property
    def read(self) -> set[str]:
        """What was read, scratch aside."""
        return {path for path in self.trace.read if not path.startswith(_SCRATCH)}

    @property
    def written(self) -> set[str]:
        """What was written, scratch aside."""
        return {path for path in self.trace.written if not path.startswith(_SCRATCH)}

    @property
    def places(self) -> tuple[str, ...]:
        """Where it has to leave what it delivers; none where it is judged where it worked."""
        artifacts = execution.verifier_spec(self.bundle).artifacts
        return tuple(artifact.source.rstrip("/") for artifact in artifacts)

    @property
    def started(self) -> set[str]:
        """The base names of what was executed, scripts that an interpreter was given too."""
        scripts = (
            _base(command[1])
            for command in self.trace.commands
            if len(command) > 1 and _INTERPRETER.fullmatch(_base(command[0]))
        )
        return {*self.trace.programs, *scripts}

    @property
    def world(self) -> dict[str, str]:
        """The files that its image is built from, each with the digest of its content."""
        return {f.path: f.digest for f in self.bundle.folder("environment")}

    @property
    def skills(self) -> set[str]:
        """The programs and modules that were used."""
        sources = self.bundle.folder("solution")
        return {skill.token for skill in trace_skills(self.trace, sources)}


def run_of(bundle: Bundle, result: TrialResult) -> Run | None:
    """What is known of a run; None where it did not pass, or could not be followed."""
    trace = result.trace
    if not result.is_passed or trace is None or trace.is_blind:
        return None
    left = {f.path: f.digest for f in result.state or () if not f.is_folder}
    return Run(bundle, trace, left)


def complaint(before: Run, after: Run, direction: Direction, effect: Effect) -> str | None:
    """What the runs say against a step in this direction, in one line.

    - length: something is left that was not left before, or an earlier step's work is read.
    - scenario: what was skilled before is so still.
    - scenario and skill: no step was added that reads earlier work, or delivers elsewhere, and
      leaves more. A budget is weighed by such a step, and is a skill all the same.
    - skill: what the parent's solution was given is given still. An input that is gone, and has to
      be made again, is another situation, unless a new program of that world has to be mastered.
    """
    made = {p for p in after.left if p in after.trace.written and p not in before.read}
    added = sorted(made - before.left.keys())
    if direction is Direction.LENGTH:
        passed_on = (after.read & after.written) - before.read
        is_more = any(after.left[path] != before.left.get(path) for path in made)
        if not is_more and not passed_on:
            return "a step is said to be added, but nothing else is left, and no earlier work read"
        return None
    begun = sorted((after.read & before.written) - before.read)
    if added and effect is not Effect.BUDGET:
        places = before.places
        elsewhere = [path for path in added if places and not covers(places, path)]
        if begun or elsewhere:
            told = f"reads {begun[0]} and leaves {added[0]}" if begun else ""
            told = told or f"delivers {elsewhere[0]}, where nothing had to be left before"
            return f"the {direction.value} is said to change, but a step is added: it {told}"
    lost = sorted(before.skills - after.skills)
    if direction is Direction.SCENARIO and lost:
        return f"the scenario is said to change, but skills do: {', '.join(lost)} used no more"
    if direction is Direction.SKILL and (gone := _remade(before, after)):
        return (
            "only the skill is said to change, but the situation does: "
            f"{gone[0]} is given no more, and the solution makes it again"
        )
    return None


def _remade(before: Run, after: Run) -> list[str]:
    """Inputs that the new world lacks and the new solution writes, with no new program to run."""
    old, new = before.world, after.world
    strange = {_base(path) for path, digest in new.items() if old.get(path) != digest}
    if strange & (after.started - before.started):
        return []
    gone = {_base(path) for path in old.keys() - new.keys()}
    written = (after.written & before.read) - before.written
    return sorted(path for path in written if _base(path) in gone)


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]
