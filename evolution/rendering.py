"""The instruction of an environment, rendered as a whole from the original and all live demands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import TextWrapper

from evolution.contracts import Demand
from evolution.directions import Aspect, Direction, Effect
from evolution.harbor import strip_canary
from evolution.operators.base import facts

WIDTH = 100
"""Columns of what is added; the original keeps its own lines."""
_HEADING = re.compile(r"^#{1,6}\s")
_SECTION = re.compile(r"(?m)^##\s")
_LIST = re.compile(r"\s*([-*]|\d+[.)])\s")
_BLOCK = re.compile(r"\s*([-*#>|]|\d+[.)]\s)")
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
    """One text: the goal, what the world looks like, the original work, and all conditions.

    The leading canary lines of the original stay where they are, byte for byte.
    """
    ordered = sorted(demands, key=order_of)
    body = strip_canary(original)
    head = original[: len(original) - len(body)]
    canary = head if head.strip() else ""
    title, body = _title(body)
    for demand in ordered:
        for path in facts(demand, "input"):
            body = _remarked(body, path)
    goal, work = _goal(body)
    before = [d.statement.situation for d in ordered if d.direction is not Direction.LENGTH]
    after = [d.statement.situation for d in ordered if d.direction is Direction.LENGTH]
    parts = [title, goal, *map(wrapped, before), work, *map(wrapped, after)]
    conditions = _conditions(ordered)
    if conditions:
        has_sections = _SECTION.search(body) is not None
        parts.append("## Conditions" if has_sections else "Conditions that the result must meet:")
        parts.append("\n".join(wrapped(one, "- ") for one in conditions))
    return canary + "\n\n".join(part for part in parts if part) + "\n"


def wrapped(text: str, head: str = "") -> str:
    """Running text in lines of at most `WIDTH` columns; `head` begins the first, e.g. a bullet."""
    if not text:
        return ""
    filler = TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
    filler.initial_indent, filler.subsequent_indent = head, " " * len(head)
    return filler.fill(text)


def _conditions(demands: list[Demand]) -> list[str]:
    """The duties, a line each; what has to be restored alike is said together."""
    alike: list[str] = []
    others: list[str] = []
    for demand in demands:
        for line in filter(None, demand.statement.requirement.split("\n")):
            targets = facts(demand, "input")
            if targets and line == restored([*targets]):
                alike += targets
            else:
                others.append(line)
    return ([restored(alike)] if alike else []) + others


def restored(targets: list[str]) -> str:
    """The duty to restore these files."""
    verb = "is" if len(targets) == 1 else "are"
    return f"{listed(targets)} {verb} restored byte for byte and left in place."


def listed(paths: Iterable[str]) -> str:
    """Paths as a sentence names them: `a`, `b` and `c`."""
    words = [f"`{path}`" for path in paths]
    return words[-1] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _goal(body: str) -> tuple[str, str]:
    """The first paragraph, if it is running text (with the list it announces), and the rest."""
    whole = body.strip("\n")
    first, _, rest = whole.partition("\n\n")
    if _BLOCK.match(first) or _FENCE.match(first):
        return "", whole
    if first.endswith(":"):
        # What the colon announces belongs to it, if it is one list.
        block, _, rest = rest.partition("\n\n")
        if not _LIST.match(block):
            return "", whole
        first = f"{first}\n\n{block}"
    return (first, rest.strip("\n")) if rest.strip() else ("", whole)


def _title(body: str) -> tuple[str, str]:
    lines = body.lstrip("\n").split("\n")
    if lines and _HEADING.match(lines[0]):
        return lines[0].rstrip(), "\n".join(lines[1:])
    return "", body


def _remarked(body: str, path: str) -> str:
    """Say at the first mention of a hidden input, in running text, that it has to be restored."""
    ends = "|".join(re.escape(path[at:]) for at in _starts(path))
    mention = re.compile(f"`(?:{ends})`(?! \\(once restored\\))")
    fenced = False
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        if not fenced and not line.lstrip().startswith("|") and mention.search(line):
            lines[number] = mention.sub(lambda found: f"{found[0]} (once restored)", line, count=1)
            break
    return "\n".join(lines)


def _starts(path: str) -> list[int]:
    """Where the path and its endings begin: `/a/b/c`, `b/c`, `c`."""
    return [0, *(at + 1 for at, mark in enumerate(path) if mark == "/" and at)]
