"""Damages to shell scripts, made line by line where that cannot break the script's form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evolution.gates.mutation.python import Edit

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_CONTROL = re.compile(
    r"^\s*(#|if\b|then\b|else\b|elif\b|fi\b|for\b|while\b|until\b|do\b|done\b|case\b|esac\b|"
    r"function\b|set\s|shopt\b|local\b|exit\b|return\b|[{}()]|\w+\s*\(\)|[^#]*;;\s*$|$)"
)
_CONTINUED = re.compile(r"(\\|\||&&|\(|,)\s*$")
_BLOCK_BEGINS = re.compile(r"(\{|\bdo|\bthen|\belse)\s*$")
_NUMBER = re.compile(r"(?<![\w$./-])\d{1,30}(?![\w./])")
_EXCHANGES = (
    ("-gt", "-ge"),
    ("-lt", "-le"),
    ("-ge", "-gt"),
    ("-le", "-lt"),
    ("-eq", "-ne"),
    ("==", "!="),
    (">=", ">"),
    ("<=", "<"),
    ("sort -u", "sort"),
    ("sort -n", "sort"),
    ("sort -rn", "sort -n"),
    ("grep -v", "grep"),
    ("uniq -c", "uniq"),
    ("head -n", "tail -n"),
    ("&&", "||"),
)


def edits(source: str) -> list[Edit]:
    """Every damage that this script offers outside its here-documents, in order of place."""
    return sorted(_find(source), key=lambda e: (e.start, e.end, e.kind, e.text))


def _find(source: str) -> Iterator[Edit]:
    plain: tuple[int, int, str] | None = None
    for start, line, is_whole in _lines(source):
        end = start + len(line.encode())
        yield from _exchanges(start, line)
        if not is_whole:
            plain = None
            continue
        indent = line[: len(line) - len(line.lstrip())]
        yield Edit("drop a statement", start, end, f"{indent}:")
        if plain is not None and plain[1] + 1 == start and plain[2] != line:
            yield Edit("reorder statements", plain[0], end, f"{line}\n{plain[2]}")
        plain = (start, end, line)


def _lines(source: str) -> Iterator[tuple[int, str, bool]]:
    """Each line of shell with its place in bytes, and whether it is one whole plain statement."""
    at, until, is_open, in_quotes = 0, "", False, False
    for raw in source.split("\n"):
        start, at = at, at + len(raw.encode()) + 1
        if until:
            until = "" if raw.strip() == until else until
            continue
        if raw.lstrip().startswith("#") and not in_quotes:
            continue
        odd = (raw.count("'") + raw.count('"')) % 2 == 1
        heredoc = None if in_quotes else _HEREDOC.search(raw)
        is_whole = not (is_open or odd or in_quotes or heredoc)
        is_whole = is_whole and not any(
            (_CONTROL.match(raw), _CONTINUED.search(raw), _BLOCK_BEGINS.search(raw))
        )
        yield start, raw, is_whole
        in_quotes = in_quotes != odd
        is_open = bool(_CONTINUED.search(raw)) and not heredoc
        until = heredoc[2] if heredoc else ""


def _exchanges(start: int, line: str) -> Iterator[Edit]:
    for match in _NUMBER.finditer(line):
        if not line.lstrip().startswith(("#", "set ")) and f"{match[0]}>" not in line:
            place = start + len(line[: match.start()].encode())
            number = str(int(match[0]) + 1)
            yield Edit("alter a literal", place, place + len(match[0]), number)
    for old, new in _EXCHANGES:
        found = re.search(rf"(?<!\S){re.escape(old)}(?!\S)", line)
        if found:
            place = start + len(line[: found.start()].encode())
            yield Edit("weaken a comparison", place, place + len(old.encode()), new)


def python_bodies(source: str) -> Iterator[tuple[int, str]]:
    """The Python programs that a script holds as here-documents: place in bytes, and text."""
    lines = source.split("\n")
    at, number = 0, 0
    while number < len(lines):
        line = lines[number]
        at += len(line.encode()) + 1
        number += 1
        match = _HEREDOC.search(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        body = []
        begin = at
        while number < len(lines) and lines[number].strip() != match[2]:
            body.append(lines[number])
            at += len(lines[number].encode()) + 1
            number += 1
        if re.search(r"\bpython3?\b", line[: match.start()] or line):
            yield begin, "\n".join(body) + "\n"
