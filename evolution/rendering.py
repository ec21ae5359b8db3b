"""The instruction of an environment, rendered as a whole from the original and all live demands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evolution.contracts import Demand
from evolution.directions import Aspect, Direction, Effect

_CANARY = re.compile(r"^\s*(<!--.*canary.*-->|#.*canary.*)\s*$", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6}\s")
_SECTION = re.compile(r"(?m)^##\s")
_FENCE = re.compile(r"^\s*(```|~~~)")


def order_of(demand: Demand) -> tuple[int, str]:
    """Where a demand stands: structure, constraints, concealment, dynamics; then by name."""
    if demand.direction is Direction.LENGTH:
        group = 0
    elif demand.effect is Effect.OBSERVATION:
        group = 2
    elif demand.aspect is Aspect.DYNAMICS:
        group = 3
    else:
        group = 1
    return group, demand.id


def render(original: str, demands: Iterable[Demand]) -> str:
    """One text: what the world looks like, the original work, and one list of all conditions.

    The leading canary lines of the original stay where they are, byte for byte.
    """
    ordered = sorted(demands, key=order_of)
    canary, body = _split(original)
    title, body = _title(body)
    situations = [d.statement.situation for d in ordered if d.statement.situation]
    requirements = [d.statement.requirement for d in ordered if d.statement.requirement]
    for demand in ordered:
        for name, value in demand.facts:
            if name == "input":
                body = _remarked(body, value)
    has_sections = _SECTION.search(body) is not None
    parts = [title] if title else []
    if situations:
        parts.append("\n\n".join(situations))
    if has_sections and situations and not body.lstrip().startswith("#"):
        parts.append("## The work")
    parts.append(body.strip("\n"))
    if requirements:
        parts.append("## Conditions" if has_sections else "Conditions that the result must meet:")
        parts.append("\n".join(f"- {requirement}" for requirement in requirements))
    return canary + "\n\n".join(parts) + "\n"


def _split(text: str) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    count = 0
    for number, line in enumerate(lines):
        if _CANARY.match(line):
            count = number + 1
        elif line.strip():
            break
        elif count:
            count = number + 1
    return "".join(lines[:count]), "".join(lines[count:])


def _title(body: str) -> tuple[str, str]:
    lines = body.lstrip("\n").split("\n")
    if lines and _HEADING.match(lines[0]):
        return lines[0].rstrip(), "\n".join(lines[1:])
    return "", body


def _remarked(body: str, path: str) -> str:
    """Say at the first mention of a hidden input, in running text, that it has to be restored."""
    fenced = False
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        mention = f"`{path}`"
        if not fenced and mention in line and not line.lstrip().startswith("|"):
            lines[number] = line.replace(mention, f"{mention} (once restored)", 1)
            break
    return "\n".join(lines)
