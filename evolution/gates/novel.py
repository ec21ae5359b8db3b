"""`novel`: is it new? Compared with its parent, its siblings, and a set that it is kept apart from.

Texts are compared by their shingles: five words in a row, after numbers, case, white space and
punctuation are taken out of account, so that a copy with other figures is a copy. Data of the tests
is left out: the same work on other data is the same work. A child shares nearly all of its text
with its parent, so of parent and siblings only what is *added* counts.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

from evolution.bundle import Bundle
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed, not_applicable, passed
from evolution.gates.case import Case
from evolution.gates.programs import is_program

GATE = "novel"
WORDS = 5
LARGEST_BYTES = 2_000_000
"""Of a larger file only this much is compared."""
SAME_TEXT = 0.9
"""The Jaccard similarity from which on two environments are near-duplicates."""
SAME_ADDITION = 0.9
"""The same of what two siblings add to their parent."""
FEWEST_SHINGLES = 12
"""Smaller sets say too little for a comparison by share: only equal ones count as the same."""
_WORD = re.compile(rb"[^\W_]+")
_NUMBER = re.compile(rb"\d+")

Shingles = frozenset[int]


def check(case: Case) -> GateResult:
    """Compare the files; nothing is run."""
    own = shingles(case.bundle)
    parent = shingles(case.parent.bundle) if case.parent is not None else None
    figures = {"shingles": float(len(own))}
    evidence: list[Evidence] = []
    if case.parent is not None and parent is not None:
        figures["added"] = float(len(own - parent))
        figures["kept"] = round(similarity(own, parent), 4)
        told = f"{len(own - parent)} of {len(own)} shingles are new, {len(parent - own)} are gone"
        evidence.append(Evidence(label="the parent", result=told))
        if _has_same_files(case.bundle, case.parent.bundle):
            return failed(GATE, "nothing but configuration differs from the parent", evidence)
        if own == parent and _has_same_image(case.bundle, case.parent.bundle):
            reason = "nothing differs from the parent but numbers, case and white space"
            return failed(GATE, reason, evidence, **figures)
    nearest = 0.0
    for name, other in case.others:
        if other.digest == case.bundle.digest:
            return failed(GATE, f"the same files as {name}", evidence, **figures)
        share, said = _compared(own, shingles(other), parent)
        nearest = max(nearest, share)
        if said:
            evidence.append(Evidence(label=name, result=said))
            return failed(GATE, f"near-duplicate of {name}: {said}", evidence, **figures)
    if case.others:
        figures["nearest"] = round(nearest, 4)
    if parent is None and not case.others:
        return not_applicable(GATE, "there is nothing to compare it with")
    count = len(case.others)
    beside = f", and is unlike {count} others (nearest {nearest:.0%})" if count else ""
    start = f"adds {len(own - parent)} shingles to its parent" if parent is not None else "is new"
    return passed(GATE, f"{start}{beside}", evidence, **figures)


def _compared(own: Shingles, other: Shingles, parent: Shingles | None) -> tuple[float, str]:
    """How alike two are, and one line when they are near-duplicates.

    Two children of one parent are compared by what they add to it.
    """
    if parent is not None and similarity(other, parent) >= 0.5:
        mine, its = own - parent, other - parent
        share = similarity(mine, its)
        is_same = share >= SAME_ADDITION and min(len(mine), len(its)) >= FEWEST_SHINGLES
        said = f"{share:.0%} of what both add to the parent is the same"
        return share, said if is_same or (mine == its and mine) else ""
    share = similarity(own, other)
    is_same = share >= SAME_TEXT and min(len(own), len(other)) >= FEWEST_SHINGLES
    return share, f"{share:.0%} of all shingles are the same" if is_same or own == other else ""


def shingles(bundle: Bundle) -> Shingles:
    """All runs of five words in instruction, solution and the tests' programs, as fixed numbers."""
    found: set[int] = set()
    for text in _texts(bundle):
        words = _WORD.findall(_NUMBER.sub(b"0", text.lower()))
        runs = (words[at : at + WORDS] for at in range(max(1, len(words) - WORDS + 1)))
        found.update(_key(run) for run in runs if run)
    return frozenset(found)


def _key(run: list[bytes]) -> int:
    """64 bits: two check sums over the words and over their reverse."""
    return zlib.crc32(b" ".join(run)) << 32 | zlib.crc32(b" ".join(reversed(run)))


def _texts(bundle: Bundle) -> Iterable[bytes]:
    yield bundle.displayed_instruction.encode("utf-8", "surrogatepass")
    for file in bundle.files:
        is_judge = file.path.startswith("tests/") and is_program(file.path, file.data)
        is_compared = is_judge or file.path.startswith("solution/")
        if is_compared and file.link is None and b"\0" not in file.data[:4096]:
            yield file.data[:LARGEST_BYTES]


def similarity(one: Shingles, two: Shingles) -> float:
    """The Jaccard similarity of two sets: shared ones over all; 1.0 for two empty sets."""
    union = len(one | two)
    return len(one & two) / union if union else 1.0


def _has_same_files(one: Bundle, two: Bundle) -> bool:
    """Whether all files but `task.toml` are the same."""
    return _files(one) == _files(two)


def _has_same_image(one: Bundle, two: Bundle) -> bool:
    """Whether the solver meets the same files."""
    return set(one.folder("environment")) == set(two.folder("environment"))


def _files(bundle: Bundle) -> dict[str, tuple[str, int]]:
    return {f.path: (f.digest, f.mode) for f in bundle.files if f.path != "task.toml"}
