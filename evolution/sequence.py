"""Scenario-skill sequences: what an environment looks like from above, and how a step edits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from evolution.directions import Direction
from evolution.plain_text import plain


@dataclass(frozen=True, slots=True)
class Pair:
    """The state of the world found at one point, and the skill to be applied there."""

    scenario: str
    skill: str


class EditKind(StrEnum):
    """The three edits, one per direction."""

    REPLACE_SCENARIO = "replace_scenario"
    REPLACE_SKILL = "replace_skill"
    INSERT = "insert"


KIND_OF_DIRECTION = {
    Direction.SCENARIO: EditKind.REPLACE_SCENARIO,
    Direction.SKILL: EditKind.REPLACE_SKILL,
    Direction.LENGTH: EditKind.INSERT,
}


@dataclass(frozen=True, slots=True)
class SequenceEdit:
    """One edit at `index`: the pair that stands there afterwards (replaced or inserted).

    `more` are further edits of the same step, each made on what the ones before it left.
    """

    kind: EditKind
    index: int
    pair: Pair
    more: tuple[SequenceEdit, ...] = ()

    @property
    def parts(self) -> tuple[SequenceEdit, ...]:
        """All edits of single pairs that this one stands for, in order."""
        return (replace(self, more=()), *(part for one in self.more for part in one.parts))


Sequence = tuple[Pair, ...]


def assumed_sequence(config: Mapping[str, Any]) -> Sequence:
    """One pair for an environment (its `task.toml`, parsed) that states no sequence itself."""
    metadata = config.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    tags = said.get("tags")
    words = [str(tag) for tag in tags[:3]] if isinstance(tags, list) else []
    skill = ", ".join(words) or str(said.get("category") or "the original work")
    return (Pair("the environment as it was imported", plain(skill)[:200]),)


def apply_edit(sequence: Sequence, edit: SequenceEdit) -> Sequence:
    """The sequence after the edit. Raises ValueError where the edit does not fit the sequence."""
    for part in edit.parts:
        sequence = _applied(sequence, part)
    return sequence


def _applied(sequence: Sequence, edit: SequenceEdit) -> Sequence:
    upper = len(sequence) if edit.kind is EditKind.INSERT else len(sequence) - 1
    if not 0 <= edit.index <= upper:
        raise ValueError(f"no place {edit.index} in a sequence of {len(sequence)} pairs")
    if edit.kind is EditKind.INSERT:
        return (*sequence[: edit.index], edit.pair, *sequence[edit.index :])
    old = sequence[edit.index]
    if edit.kind is EditKind.REPLACE_SCENARIO and edit.pair.skill != old.skill:
        raise ValueError("a change of scenario keeps the skill")
    if edit.kind is EditKind.REPLACE_SKILL and edit.pair.scenario != old.scenario:
        raise ValueError("a change of skill keeps the scenario")
    if edit.pair == old:
        raise ValueError("the edit changes nothing")
    return (*sequence[: edit.index], edit.pair, *sequence[edit.index + 1 :])
