"""Rubrics: what a child must meet beyond what can be proved. Some are rules, some are judged."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from evolution.contracts import Subject
from evolution.gates.case import Case
from sandbox.contracts import TrialResult

VERSION = 1
_TELLS = re.compile(r"(?<![\w/])/?(?:tests?/|solution/|solve\.sh|test\.sh|/logs/verifier)")
_HOLLOW = re.compile(
    r"(?i)\b(?:make (?:it|this) harder|this is (?:a )?(?:hard|difficult|tricky)"
    r"|be (?:very )?careful)\b"
)
LONGEST_GROWTH = 3.0
"""An instruction that grows by more than this factor in one step is another task."""
SHORT_INSTRUCTION = 1500


@dataclass(frozen=True, slots=True)
class Rubric:
    """A criterion that the Judge applies. `text` is what it is told."""

    name: str
    text: str


JUDGED: tuple[Rubric, ...] = (
    Rubric(
        "real-work",
        "The new demand makes the solver do something more. It is not clerical (another name, one"
        " more column for its own sake) and not mere computation.",
    ),
    Rubric(
        "discoverable",
        "Whatever the tests insist on for the new demand is stated in the instruction or can be"
        " found in the environment's files.",
    ),
    Rubric(
        "as-one-text",
        "The instruction reads as one task, written at once; the new demand is not a clause patched"
        " on at the end, and nothing in it contradicts something else.",
    ),
    Rubric(
        "method-free",
        "The new checks judge results and behaviour. Correct work done in another way passes them.",
    ),
    Rubric(
        "plausible",
        "The situation is one that people who run real systems could meet.",
    ),
)


def _says_how_it_is_judged(case: Case, _: TrialResult) -> str | None:
    before = {match[0] for match in _TELLS.finditer(_instruction(case.parent))}
    found = [m[0] for m in _TELLS.finditer(case.bundle.instruction) if m[0] not in before]
    return f"the instruction speaks of {found[0]!r}, which no solver sees" if found else None


def _is_hollow(case: Case, _: TrialResult) -> str | None:
    before = _instruction(case.parent)
    found = _HOLLOW.search(case.bundle.instruction)
    if found is None or found[0] in before:
        return None
    return f"the instruction only speaks of being hard: {found[0]!r}"


def _grows(case: Case, _: TrialResult) -> str | None:
    before, after = len(_instruction(case.parent)), len(case.bundle.instruction)
    if after <= max(SHORT_INSTRUCTION, LONGEST_GROWTH * before):
        return None
    return f"the instruction grew from {before} to {after} characters in one step"


def _keeps_checks(case: Case, oracle: TrialResult) -> str | None:
    parent = case.parent.oracle if case.parent is not None else None
    if parent is None:
        return None
    gone = {c.name for c in parent.result.checks} - {c.name for c in oracle.checks}
    # A base without a report counts as one check, which a report of its own replaces.
    gone -= {"base"}
    return f"the tests no longer report the check {sorted(gone)[0]!r}" if gone else None


Rule = Callable[[Case, TrialResult], str | None]
RULES: tuple[tuple[str, Rule], ...] = (
    ("keeps-checks", _keeps_checks),
    ("silent-on-judging", _says_how_it_is_judged),
    ("not-hollow", _is_hollow),
    ("one-step", _grows),
)
"""Rules by name: each says in one line what is wrong, or None. They see the oracle's run."""


def _instruction(subject: Subject | None) -> str:
    return subject.bundle.instruction if subject is not None else ""
