"""Wrappers that take an input away and give it back in a form that has to be worked on first.

The solver restores the file byte for byte in its old place, so the original work goes on as it
was; the restored file is delivered as evidence and judged.
"""

from __future__ import annotations

import hashlib
import random
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from evolution.composition import step_path
from evolution.contracts import Mutation, Statement, Subject
from evolution.directions import Direction
from evolution.operators.base import Operator, facts
from evolution.operators.inputs import Input, hideable, hiding_refusal, replaced, site
from evolution.operators.wrapping import Draft, build, part, step_pair, wrapping_refusal
from evolution.rendering import restored
from evolution.sequence import EditKind, Pair, SequenceEdit
from sandbox.contracts import SandboxFile


@dataclass(frozen=True)
class Arrival:
    """How an input arrives instead: files for the new place, and how that is told.

    `constants` go into the step's script beside SOURCE and TARGET. `phrase` names the new
    scenario, or the new skill, in a few words.
    """

    files: tuple[SandboxFile, ...]
    situation: str
    phrase: str
    why: str
    requirement: str = ""
    constants: Mapping[str, object] = field(default_factory=dict)
    naive: str = ""
    """A script for the step that overlooks the difficulty."""
    decoy: str = ""
    discovery: str = ""
    withheld: tuple[str, ...] = ()


class RestoringOperator(Operator):
    """An operator of that kind: a subclass says how the file arrives."""

    folder: str
    """The name that the new place likes to have."""
    number: int
    """Where its step stands, below 50."""
    note: str
    """What its step does, in a line."""

    def accepts(self, one: Input) -> bool:
        """Whether this input can arrive that way."""
        return True

    @abstractmethod
    def arrival(self, hidden: Input, place: str, notch: int, rng: random.Random) -> Arrival:
        """How the input arrives at `place` (an absolute folder)."""

    def candidates(self, subject: Subject) -> tuple[Input, ...]:
        """The inputs that it can take, by path."""
        return tuple(one for one in hideable(subject) if self.accepts(one))

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses a second use, and subjects without a fitting input."""
        reason = wrapping_refusal(self, subject) or hiding_refusal(subject)
        if reason:
            return reason
        return None if self.candidates(subject) else "no input file is of a fitting kind and size"

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """See `Operator.apply`."""
        reason = self.applies_to(subject)
        if reason:
            raise ValueError(reason)
        hidden = rng.choice(self.candidates(subject))
        folder, place = site(subject, self.folder)
        arrival = self.arrival(hidden, place, notch, rng)
        put, gone = replaced(subject, hidden, folder, place, arrival.files)
        constants = {"SOURCE": place, "TARGET": hidden.target, **arrival.constants}
        path = step_path(self.number, self.name)
        expected = {
            "TARGET": hidden.target,
            "BYTES": len(hidden.data),
            "SHA256": hashlib.sha256(hidden.data).hexdigest(),
        }
        index = free_pair(subject)
        draft = Draft(
            notch=notch,
            edit=self._edit(subject, index, arrival.phrase),
            statement=Statement(
                arrival.situation, arrival.requirement or restored([hidden.target])
            ),
            why=arrival.why,
            steps=step_pair(path, part(self.name, "step.py", constants), self.note),
            checks=part("restoring", "checks.py", expected).decode(),
            check_names=("restored",),
            artifacts=(hidden.target,),
            facts=(
                ("input", hidden.target),
                ("source", place),
                ("artifact", hidden.target),
                ("pair", str(index)),
                *(("withheld", value) for value in arrival.withheld),
            ),
            environment=tuple(put),
            removed=tuple(gone),
            naive=_script(path, arrival.naive),
            decoy=_script(path, arrival.decoy),
            discovery=arrival.discovery,
            withheld=arrival.withheld,
            is_premise_changed=True,
        )
        return build(self, subject, draft)

    def _edit(self, subject: Subject, index: int, phrase: str) -> SequenceEdit:
        old = subject.sequence[index]
        if self.direction is Direction.SCENARIO:
            return SequenceEdit(EditKind.REPLACE_SCENARIO, index, Pair(phrase, old.skill))
        return SequenceEdit(EditKind.REPLACE_SKILL, index, Pair(old.scenario, phrase))


def _script(path: str, text: str) -> tuple[SandboxFile, ...]:
    head = "#!/bin/bash\nset -euo pipefail\n"
    return (SandboxFile(path, (head + text).encode(), 0o755),) if text else ()


def free_pair(subject: Subject) -> int:
    """The first pair of the sequence that no demand has replaced yet, else the first."""
    taken = {index for demand in subject.demands for index in facts(demand, "pair")}
    free = (at for at in range(len(subject.sequence)) if str(at) not in taken)
    return next(free, 0)
