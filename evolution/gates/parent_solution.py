"""`parent_solution`: does the parent's solution, with what was renamed mapped, still pass?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from difflib import SequenceMatcher

from evolution.bundle import Bundle
from evolution.composition import artifacts_of
from evolution.contracts import Evidence
from evolution.directions import Effect
from evolution.gates.answers import (
    failed,
    inconclusive,
    machinery_fault,
    not_applicable,
    observe,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import reference_files, solution_spec
from sandbox.contracts import Outcome, SandboxFile

GATE = "parent_solution"
MUST_FAIL = frozenset({Effect.SOLUTION, Effect.BUDGET})
"""The effect classes in which the parent's work must not be enough."""

_WORDS = re.compile(r"[^\s`\"'(),;]+")
_NAME = re.compile(r"[A-Za-z0-9_./~-]*[./_\d-][A-Za-z0-9_./~-]*")
MOST_NAMES = 12


def check(case: Case) -> Steps:
    """Run the parent's solution in the child: as it was, and with what was renamed mapped."""
    if case.parent is None or case.mutation is None:
        return not_applicable(GATE, "no parent is at hand")
    before, after = case.parent.bundle, case.bundle
    plain = reference_files(before)
    names = renamed(before, after)
    mapped = mapped_files(plain, names)
    asks = [Ask(solution_spec(after, plain), "parent")]
    if mapped != plain:
        asks.append(Ask(solution_spec(after, mapped), "parent_mapped"))
    results = yield tuple(asks)
    labels = ("the parent's solution", "the parent's solution, renamed to fit")
    evidence = [
        observe(label, ask, result)
        for label, ask, result in zip(labels, asks, results, strict=False)
    ]
    if mapped != plain:
        pairs = ", ".join(f"{old} → {new}" for old, new in names)
        evidence.append(Evidence(label="renamed", result=pairs))
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault, evidence)
    passing = [result.outcome is Outcome.PASS for result in results]
    effect = case.mutation.demand.effect
    figures = {"passes": float(sum(passing))}
    if not any(passing):
        return passed(GATE, "the parent's solution is not enough", evidence, **figures)
    how = "as it is" if passing[0] else "once the new names are put in"
    if effect in MUST_FAIL:
        return failed(GATE, f"the parent's solution still passes, {how}", evidence, **figures)
    reason = f"the parent's solution passes {how}; reported only, the effect is {effect.value}"
    return passed(GATE, reason, evidence, **figures)


def renamed(before: Bundle, after: Bundle) -> tuple[tuple[str, str], ...]:
    """What the child only calls otherwise: pairs of an old and a new name, the longest first.

    Three sources: declared artifacts that changed one for one; environment files that moved with
    the same content; words of the instruction that look like a name or a number and were exchanged
    in place.
    """
    found: dict[str, str] = {}
    old, new = artifacts_of(before), artifacts_of(after)
    gone, come = [p for p in old if p not in new], [p for p in new if p not in old]
    if len(gone) == len(come):
        found.update(zip(gone, come, strict=True))
    found.update(_moved(before, after))
    for one, two in _exchanged(before.instruction, after.instruction):
        found.setdefault(one, two)
    for one, two in tuple(found.items()):
        folder, _, base = one.rpartition("/")
        new_folder, _, new_base = two.rpartition("/")
        if folder == new_folder and "." in base and base != new_base:
            found.setdefault(base, new_base)  # a script may have the folder in a variable
    pairs = sorted(found.items(), key=lambda pair: (-len(pair[0]), pair))
    return tuple(pairs[:MOST_NAMES])


def _moved(before: Bundle, after: Bundle) -> Iterable[tuple[str, str]]:
    """Base names of environment files with the same content under another name."""
    gone = {f.digest: f.path for f in before.folder("environment") if f.data}
    came = {f.digest: f.path for f in after.folder("environment") if f.data}
    for digest, path in gone.items():
        new = came.get(digest)
        if new and new != path:
            yield path.rsplit("/", 1)[-1], new.rsplit("/", 1)[-1]


def _exchanged(before: str, after: str) -> Iterable[tuple[str, str]]:
    """Names and numbers of the instruction that gave way to another one in the same place."""
    old = [word.rstrip(".:") for word in _WORDS.findall(before)]
    new = [word.rstrip(".:") for word in _WORDS.findall(after)]
    votes: Counter[tuple[str, str]] = Counter()
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            votes.update(zip(old[i1:i2], new[j1:j2], strict=True))
    for (one, two), _ in votes.most_common():
        if len(one) >= 3 and _NAME.fullmatch(one) and _NAME.fullmatch(two) and two not in old:
            yield one, two


def mapped_files(
    files: Iterable[SandboxFile], names: tuple[tuple[str, str], ...]
) -> tuple[SandboxFile, ...]:
    """These files with every old name replaced by its new one, all at once, whole names only."""
    if not names:
        return tuple(files)
    table = dict(names)
    either = "|".join(re.escape(old) for old, _ in names)
    pattern = re.compile(rf"(?<![\w.-])(?:{either})(?![\w-]|\.\w)")
    return tuple(_mapped(file, pattern, table) for file in files)


def _mapped(file: SandboxFile, pattern: re.Pattern[str], table: dict[str, str]) -> SandboxFile:
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return file
    return replace(file, data=pattern.sub(lambda match: table[match[0]], text).encode())
