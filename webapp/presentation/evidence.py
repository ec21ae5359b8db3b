"""Evidence as rows: what repeats itself stands in one row, with all its trials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

_NUMBER = re.compile(r"\d+")
FEW = 3
"""Outputs up to this number are shown unfolded."""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One observation, or several that say the same."""

    label: str
    result: str
    command: str
    exit_status: int | None
    last_lines: str
    files: tuple[str, ...]
    trials: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class EvidenceTable:
    """All rows of a gate. `is_unfolded`: the outputs are few enough to be shown at once."""

    rows: tuple[EvidenceRow, ...]
    is_unfolded: bool

    @property
    def has_trials(self) -> bool:
        """Whether anything was run."""
        return any(row.trials or row.exit_status is not None for row in self.rows)


def evidence_table(evidence: Iterable[Mapping[str, Any]]) -> EvidenceTable:
    """Neighbours that differ by a number in their label alone are one row."""
    rows: list[EvidenceRow] = []
    for _, group in groupby(map(_row, evidence), key=_alike):
        same = list(group)
        last = _NUMBER.findall(same[-1].label)
        label = same[0].label + (f" to {last[-1]}" if len(same) > 1 and last else "")
        trials = tuple(trial for row in same for trial in row.trials)
        rows.append(replace(same[0], label=label, trials=trials))
    return EvidenceTable(tuple(rows), sum(bool(row.last_lines) for row in rows) <= FEW)


def _row(said: Mapping[str, Any]) -> EvidenceRow:
    return EvidenceRow(
        label=str(said.get("label", "")),
        result=str(said.get("result", "")),
        command=str(said.get("command", "")),
        exit_status=said.get("exit_status"),
        last_lines=str(said.get("last_lines", "")),
        files=tuple(map(str, said.get("files") or ())),
        trials=(said["trial"],) if said.get("trial") else (),
    )


def _alike(row: EvidenceRow) -> tuple[object, ...]:
    return (
        _NUMBER.sub("#", row.label),
        *(row.result, row.command, row.exit_status, row.last_lines, row.files),
    )
