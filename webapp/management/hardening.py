"""`manage.py evolve --harden ID…`: for each environment a child whose tests refuse known cheats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from evolution.gates.protocol import Depth
from evolution.hardening import Hardening
from webapp import wiring
from webapp.adapters.hardening import harden_environment
from webapp.management.reporting import find_environments, format_table
from webapp.management.verifying import verify_here
from webapp.models import Environment


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one environment."""

    parent: Environment
    child: Environment | None
    found: Hardening

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        child = self.child
        return {
            "environment": self.parent.pk,
            "child": child.pk if child else None,
            "verification": child.verification if child else "",
            "end": self.found.end.value,
            "reason": self.found.reason,
            "refused": list(self.found.refused),
            "tried": list(self.found.tried),
        }


def harden_all(names: list[str], out: OutputWrapper, *, is_json: bool) -> None:
    """Harden and verify, one after another.

    Raises CommandError at the end when one could not be hardened: none is left half done.
    """
    rows = [_hardened(environment) for environment in find_environments(names)]
    if is_json:
        out.write(json.dumps({"hardened": [row.as_json() for row in rows]}))
    else:
        out.write(format_table(["id", "name", "child", "verdict", "what came of it"], _cells(rows)))
    count = sum(row.child is None for row in rows)
    if count:
        raise CommandError(f"{count} of {len(rows)} have no hardened child; see the reasons")


def _cells(rows: list[Row]) -> list[list[object]]:
    cells: list[list[object]] = []
    for row in rows:
        child = row.child
        ends = (str(child.pk), child.verification) if child else ("–", "")
        cells.append([row.parent.pk, row.parent.name, *ends, row.found.reason])
        cells += [["", "", "", "", f"tried: {line}"] for line in row.found.tried if not child]
    return cells


def _hardened(environment: Environment) -> Row:
    child, found = harden_environment(environment, wiring.runner("a person"))
    if child is not None:
        verify_here(child, Depth.FULL)  # so that its matrix shows every cheat beside the parent's
        child.refresh_from_db()
    return Row(environment, child, found)
