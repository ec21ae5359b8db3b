"""Which words tests insist on, and which words a solver is told or can find."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator

from evolution.bundle import Bundle
from evolution.gates.unpacking import Blob, Unpacker
from sandbox.contracts import SandboxFile

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*")
_SHELL_TEXT = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|(\S*[/.]\S*)")
_PARTS = re.compile(r"[._-]+")
SHORTEST = 3
SHORTEST_ENCODED = 72
"""Shorter encoded pieces are check sums, keys and chance, in bytes."""
_COMMON = """
utf utf-8 ascii json csv tsv txt xml yaml toml html true false null none nan inf yes the and for
with from not all any tests logs tmp usr bin etc var app out data opt srv home root test main python
python3 bash sha256 sha1 md5 iso utc gmt
"""
COMMON = frozenset(_COMMON.split())
"""Words that say nothing about this environment."""


def words_of(text: str) -> set[str]:
    """The words of a text that could be names, in lower case."""
    found = {match.lower() for match in _WORD.findall(text) if len(match) >= SHORTEST}
    return found - COMMON


def asserted_words(bundle: Bundle) -> set[str]:
    """The words in what the tests compare with: literals of their code, names in their data."""
    found: set[str] = set()
    for file in bundle.folder("tests"):
        if file.link is not None or b"\0" in file.data:
            continue
        text = file.data.decode("utf-8", "replace")
        for literal in _literals(file.path, text):
            found |= words_of(literal)
    return found


def _literals(path: str, text: str) -> Iterator[str]:
    if path.endswith(".py"):
        yield from _python_literals(text)
    elif path.endswith((".sh", ".bash", ".bats")) or text.startswith("#!"):
        for line in text.splitlines():
            if not line.lstrip().startswith("#"):
                yield from (" ".join(match) for match in _SHELL_TEXT.findall(line))
    elif path.endswith(".json"):
        yield from _keys(text)
    elif path.endswith((".csv", ".tsv")):
        yield text.split("\n", 1)[0]


def _python_literals(text: str) -> Iterator[str]:
    """String literals that decide something: no doc strings, no messages of failed checks."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    mute: set[int] = set()
    for node in ast.walk(tree):
        spoken: list[ast.AST | None] = []
        if isinstance(node, ast.Expr):
            spoken.append(node.value)
        elif isinstance(node, ast.Assert):
            spoken.append(node.msg)
        elif isinstance(node, ast.Raise):
            spoken.append(node.exc)
        for part in filter(None, spoken):
            if not (isinstance(node, ast.Expr) and isinstance(part, ast.Call)):
                mute.update(id(inner) for inner in ast.walk(part))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in mute:
            yield node.value


def _keys(text: str) -> Iterator[str]:
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def structure_words(state: Iterable[SandboxFile]) -> set[str]:
    """The words by which a result is laid out: file names, keys of JSON, columns of tables.

    What else it says may follow from a format that everybody knows, or from the work itself.
    """
    found: set[str] = set()
    for file in state:
        found |= words_of(file.path)
        text = file.data.decode("utf-8", "replace") if file.link is None else ""
        if text.lstrip()[:1] in ("{", "["):
            for part in (text, *text.splitlines()[:50]):
                for key in _keys(part):
                    found |= words_of(key)
        elif file.path.endswith((".csv", ".tsv")):
            found |= words_of(text.split("\n", 1)[0])
    return found


class Told:
    """What the solver is told or can read: the instruction, and the image's files unpacked."""

    def __init__(self, bundle: Bundle, paths: Iterable[str] = ()) -> None:
        parts = [bundle.displayed_instruction, *paths]
        unpacker = Unpacker()
        self.unread: list[str] = []
        files = bundle.folder("environment")
        for blob in unpacker.all_of((file.path, file.data) for file in files):
            parts.append(blob.place)
            text = _readable(blob)
            if text is None:
                self.unread.append(blob.place)
            else:
                parts.append(text)
        self.unread += unpacker.skipped
        self.text = "\n".join(parts).lower()
        self._spaced = _PARTS.sub(" ", self.text)

    def has(self, word: str) -> bool:
        """Whether a word stands there, whatever joins its parts."""
        return word in self.text or _PARTS.sub(" ", word) in self._spaced


def _readable(blob: Blob) -> str | None:
    """Its text; an empty one where it was opened further; None where it says nothing to us.

    What only looked encoded (a check sum, a ruler of dashes) is no text that could be missed.
    """
    data = blob.data
    if data[:2] in (b"\x1f\x8b", b"PK", b"BZ", b"\xfd7", b"PA") or data[257:262] == b"ustar":
        return ""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return ""
    text = data.decode("utf-8", "replace")
    strange = sum(text[:4000].count(mark) for mark in "\ufffd\0")
    if strange * 20 <= min(len(text), 4000):
        return text
    is_chance = blob.depth and (len(data) < SHORTEST_ENCODED or len(set(data)) < 16)
    return "" if is_chance else None


def state_words(state: Iterable[SandboxFile]) -> set[str]:
    """The words in what a solution left: names and contents."""
    found: set[str] = set()
    for file in state:
        found |= words_of(file.path)
        if file.link is None and b"\0" not in file.data:
            found |= words_of(file.data.decode("utf-8", "replace"))
    return found
