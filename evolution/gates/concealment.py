"""What is withheld from the solver has to be found out inside, never known beforehand."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from evolution.contracts import Mutation
from evolution.gates.case import Case
from sandbox.contracts import SandboxFile, TrialResult

SHORTEST_LINE = 16
"""Shorter lines of a file say too little to be recognised as its content."""


def carried_content(case: Case, mutation: Mutation) -> str | None:
    """One line when the solution knows what only the author can know, else None.

    That is a withheld fact, or content of an environment file that the child no longer holds.
    """
    solution = mutation.child.folder("solution")
    for fact in mutation.withheld:
        for file in solution:
            if fact.encode() in file.data:
                return f"the solution holds a withheld fact literally (solution/{file.path})"
    if case.parent is None:
        return None
    before = case.parent.bundle
    kept = mutation.child.folder("environment")
    gone = {f.digest: f for f in before.folder("environment") if f.data and f.link is None}
    for file in kept:
        gone.pop(file.digest, None)
    known = {file.data for file in before.folder("solution")}
    added = b"\n".join(f.data for f in solution if f.data not in known)
    visible = b"\n".join(f.data for f in kept) + mutation.child.instruction.encode()
    old = b"\n".join(known)
    for file in gone.values():
        if any(mark in added and mark not in visible and mark not in old for mark in _marks(file)):
            return (
                f"environment/{file.path} is only missing: the solution brings its content along, "
                "and nobody else can know it"
            )
    return None


def _marks(file: SandboxFile) -> Iterable[bytes]:
    """Pieces that give a file's content away: its longer lines, and its beginning in base64."""
    for line in file.data.splitlines():
        if len(line.strip()) >= SHORTEST_LINE:
            yield line.strip()
    if len(file.data) >= SHORTEST_LINE:
        yield base64.b64encode(file.data[: 3 * (min(len(file.data), 57) // 3)])


def is_discovered(mutation: Mutation, result: TrialResult) -> str | None:
    """One line when the discovery command leaves a withheld fact unknown."""
    if not mutation.discovery:
        return "a fact is withheld and no way to find it is given"
    output = result.solver_output.decode("utf-8", "replace")
    unknown = [fact for fact in mutation.withheld if fact not in output]
    if unknown:
        return f"finds {len(mutation.withheld) - len(unknown)} of {len(mutation.withheld)} facts"
    return None
