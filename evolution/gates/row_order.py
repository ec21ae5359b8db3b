"""The same table with its rows in another order, where nobody asked for one.

An order is asked for by a word for it in the instruction or in a document of the image, or by work
that goes through a file line by line. Only rows that somebody sorted are turned round: others may
follow one another for a reason.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from evolution.bundle import Bundle
from evolution.gates.mutation.mutant import text_of
from sandbox.contracts import SandboxFile

FEWEST = 4
"""Fewer rows than these are sorted by chance too often."""
_DOCUMENT = re.compile(r"(?i)(^|/)(readme|rules|spec\w*|format|notes)[^/]*$|\.(md|rst|adoc)$")
_CHOICE = re.compile(
    r"(?i)\b(that|which|who) (comes?|is|stands?|was) (the )?(first|last)"
    r"( in (\w+ )?order( of \w+)?)?\b"
)
"""One of several is chosen by an order: that says nothing of the rows."""
_ORDER = re.compile(
    r"(?i)\b(sort\w*|order(ed|ing)?|ascending|descending|alphabetic\w*|chronologic\w*|lexic\w*"
    r"|rank\w*|sequen\w*|consecutive\w*|top [\d-]+|appear\w*|positions?|index(ed)?|numbered"
    r"|histor\w*|timeline|cumulative|running|merge[ds]?|concatenat\w*|followed by"
    r"|comes? (first|last)|(\w+est|most|least)\b[\w ,]{0,40}\bfirst)\b"
)
_LINE_BY_LINE = re.compile(
    r"(?i)\b(convert\w*|transform\w*|translat\w*|transpos\w*|copy|copied|append\w*|rewrit\w*"
    r"|clean\w*|fix\w*|repair\w*|in place|replac\w*|keep\w*|kept|remov\w*|drop\w*|filter\w*"
    r"|extract\w*|select\w*|(each|every|per|the same|a) (row|line|record|entry)s?)\b"
)


def is_open(bundle: Bundle, file: SandboxFile) -> bool:
    """Whether nothing asks for the order of this table's rows."""
    told = "\n".join((bundle.displayed_instruction, *_documents(bundle)))
    told = _CHOICE.sub("", told)
    if _ORDER.search(told):
        return False
    return _LINE_BY_LINE.search(told) is None or not _is_of_inputs(bundle, file)


def turned(file: SandboxFile) -> bytes | None:
    """The table with its rows from the last to the first; None where they are not sorted ones."""
    rows = _rows(file)
    if rows is None or not _is_sorted(rows):
        return None
    lines = file.data.decode().splitlines(keepends=True)
    if not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join((lines[0], *reversed(lines[1:]))).encode()


def _rows(file: SandboxFile) -> list[list[str]] | None:
    """The rows after the first line; None of what is no table of whole lines."""
    text = text_of(file.data) if file.path.endswith((".csv", ".tsv")) else None
    if text is None or file.link is not None:
        return None
    mark = "," if file.path.endswith(".csv") else "\t"
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=mark))
    except csv.Error:
        return None
    is_whole = len(rows) == len(text.splitlines()) and len({len(row) for row in rows}) == 1
    return rows[1:] if is_whole and len(rows) > FEWEST else None


def _is_sorted(rows: list[list[str]]) -> bool:
    """Whether the rows are in the order of their text, or of one column."""
    return _follows([tuple(row) for row in rows]) or any(
        _follows([_key(text) for text in column]) for column in zip(*rows, strict=True)
    )


def _follows(keys: Sequence[tuple[float | str, ...]]) -> bool:
    up = all(one <= two for one, two in pairwise(keys))
    return keys[0] != keys[-1] and (up or all(one >= two for one, two in pairwise(keys)))


def _key(text: str) -> tuple[float | str, ...]:
    try:
        return float(text), ""
    except ValueError:
        return 0.0, text


def _is_of_inputs(bundle: Bundle, file: SandboxFile) -> bool:
    """Whether the first columns of the rows come in this order in some file of the image."""
    rows = _rows(file) or []
    for given in bundle.folder("environment"):
        text = (text_of(given.data) or "").lower() if given.link is None else ""
        places = [text.find(row[0].lower()) for row in rows if row]
        if places and min(places) >= 0 and places == sorted(places):
            return True
    return False


def _documents(bundle: Bundle) -> Iterable[str]:
    for file in bundle.folder("environment"):
        if _DOCUMENT.search(file.path) and file.link is None:
            yield file.data[:65536].decode("utf-8", "replace")
