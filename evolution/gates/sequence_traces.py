"""What two traced runs of reference solutions show of the step between them.

A parent's run and its child's are compared: which files were read, which were left behind, which
skills were used. A step that nothing shows happened on paper only.
"""

from __future__ import annotations

from dataclasses import dataclass

from evolution.bundle import Bundle
from evolution.difficulty.extraction import trace_skills
from evolution.directions import Direction, Effect
from sandbox.contracts import Trace, TrialResult

_SCRATCH = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/run/", "/logs/", "/root/.")  # noqa: S108


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
    - scenario and skill: no step was added that reads earlier work and leaves more. A budget is
      weighed by such a step, and is a skill all the same.
    """
    begun = sorted((after.read & before.written) - before.read)
    made = {p for p in after.left if p in after.trace.written and p not in before.read}
    added = sorted(made - before.left.keys())
    if direction is Direction.LENGTH:
        passed_on = (after.read & after.written) - before.read
        is_more = any(after.left[path] != before.left.get(path) for path in made)
        if not is_more and not passed_on:
            return "a step is said to be added, but nothing else is left, and no earlier work read"
        return None
    if begun and added and effect is not Effect.BUDGET:
        return (
            f"the {direction.value} is said to change, but a step is added: "
            f"it reads {begun[0]} and leaves {added[0]}"
        )
    lost = sorted(before.skills - after.skills)
    if direction is Direction.SCENARIO and lost:
        return f"the scenario is said to change, but skills do: {', '.join(lost)} used no more"
    return None
