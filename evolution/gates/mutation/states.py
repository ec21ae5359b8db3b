"""Damages to the state that a solution leaves: files, lines, numbers, values."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from evolution.gates.mutation.mutant import Mutant, show, text_of
from evolution.gates.programs import is_program
from sandbox.contracts import SandboxFile, VerifierSpec

LARGEST_BYTES = 4 * 1024 * 1024
"""Larger files are only deleted, emptied and truncated."""

IDLE_ROUNDS = 12
"""So many rounds over all files without a damage mean that there is none left."""

LEFT_BEHIND = "leave a temporary file"

_NUMBER = re.compile(r"(?<![\w.])\d{1,30}(?![\w])|(?<=\.)\d{1,30}\b")
_COMMENT = re.compile(r"^\s*(#(?!!)|//|;|--)")

Damage = Callable[[bytes, random.Random], bytes | None]
"""The damaged content, or None where this damage does not fit."""


def state_mutants(
    state: tuple[SandboxFile, ...], rng: random.Random, only: Iterable[str] | None = None
) -> Iterator[Mutant]:
    """Damages to a state, each file in turn, the kinds mixed; repeats are possible.

    `only` keeps to the files of these paths. Data goes first: beside it, program text has a turn
    in every fourth round, since damage to it often means the same. It goes on for as long as there
    is something to damage, so take what you need.
    """
    wanted = None if only is None else set(only)
    targets = [
        f for f in state if f.link is None and (wanted is None or f.path in wanted) and f.data
    ]
    if not targets:
        return
    rng.shuffle(targets)
    turns = {file.path: _kinds(file, rng) for file in targets}
    data = [file for file in targets if not is_program(file.path, file.data)]
    idle = 0
    for number in count():
        if idle >= IDLE_ROUNDS:
            return
        idle += 1
        for file in data if data and number % 4 != 1 else targets:
            kind, damage = next(turns[file.path])
            made = mutant(state, file, kind, damage(file.data, rng))
            if made is not None:
                idle = 0
                yield made


def worked_on(
    state: tuple[SandboxFile, ...], untouched: tuple[SandboxFile, ...]
) -> list[str] | None:
    """The paths of the files that the work made or changed; None where it only took some away.

    What lay there before and was delivered as it was is nobody's work: no test has to judge it.
    """
    paths = [file.path for file in sorted(set(state).difference(untouched))]
    return paths or None


def left_behind(verifier: VerifierSpec, state: tuple[SandboxFile, ...]) -> list[Mutant]:
    """The state with a temporary file left in its first folder; none without a folder.

    It damages nothing that was asked for: whether that matters, the tests decide.
    """
    for folder in sorted(verifier.replaced_folders(state))[:1]:
        file = SandboxFile(f"{folder}/left-behind.tmp", b"scratch\n")
        left = tuple(sorted((*state, file)))
        return [Mutant(LEFT_BEHIND, file.path, "(a file that nobody asked for)", state=left)]
    return []


def mutant(
    state: tuple[SandboxFile, ...], file: SandboxFile, kind: str, data: bytes | None
) -> Mutant | None:
    """The state with one file's content exchanged, or the file gone for kind "delete"."""
    if kind == "delete the file":
        left = tuple(f for f in state if f is not file)
        return Mutant(kind, file.path, show(file.data, None), state=left)
    if data is None or data == file.data:
        return None
    left = tuple(replace(f, data=data) if f is file else f for f in state)
    return Mutant(kind, file.path, show(file.data, data), state=left)


def _kinds(file: SandboxFile, rng: random.Random) -> Iterator[tuple[str, Damage]]:
    """The damages that suit a file, in an order of its own, again and again.

    Deleting and emptying are told apart by few tests and teach little, so they come once each.
    """
    fine: list[tuple[str, Damage]] = []
    if len(file.data) <= LARGEST_BYTES and text_of(file.data) is not None:
        fine += [("alter a number", _alter_number), ("drop a line", _drop_line)]
        if _json_of(file.data) is not None:
            fine += [("drop a value", _drop_value), ("alter a value", _alter_value)]
        else:
            fine += [("duplicate a line", _duplicate_line), ("alter a word", _alter_word)]
    else:
        fine.append(("alter a byte", _alter_byte))
    coarse: list[tuple[str, Damage]] = [
        ("truncate the file", _truncate),
        ("delete the file", lambda _data, _rng: None),
        ("empty the file", lambda _data, _rng: b""),
    ]
    rng.shuffle(fine)
    rng.shuffle(coarse)
    for pair in zip(fine, coarse, strict=False):
        yield from pair
    yield from coarse[len(fine) :]
    while True:
        yield from fine


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _telling(lines: list[bytes]) -> list[int]:
    """The lines that say something: neither blank nor a comment."""
    return [
        at
        for at, line in enumerate(lines)
        if line.strip() and not _COMMENT.match(line.decode("utf-8", "replace"))
    ]


def _drop_line(data: bytes, rng: random.Random) -> bytes | None:
    lines = _lines(data)
    telling = _telling(lines)
    if len(telling) < 2:
        return None
    del lines[rng.choice(telling)]
    return b"".join(lines)


def _duplicate_line(data: bytes, rng: random.Random) -> bytes | None:
    lines = _lines(data)
    telling = _telling(lines)
    if not telling:
        return None
    at = rng.choice(telling)
    line = lines[at] if lines[at].endswith(b"\n") else lines[at] + b"\n"
    return b"".join([*lines[:at], line, *lines[at:]])


def _alter_number(data: bytes, rng: random.Random) -> bytes | None:
    """Change one number; a word where there is none."""
    text = data.decode()
    lines = text.splitlines(keepends=True)
    places = [
        (at, match)
        for at in _telling([line.encode() for line in lines])
        for match in _NUMBER.finditer(lines[at])
    ]
    if not places:
        return _alter_word(data, rng)
    at, match = rng.choice(places)
    number = str(int(match[0]) + rng.choice((1, 2, 10))).zfill(len(match[0]))
    lines[at] = lines[at][: match.start()] + number + lines[at][match.end() :]
    return "".join(lines).encode()


def _alter_word(data: bytes, rng: random.Random) -> bytes | None:
    """Exchange two neighbouring letters or digits of one word, or else lengthen it."""
    lines = data.decode().splitlines(keepends=True)
    telling = _telling([line.encode() for line in lines])
    words = [(at, m) for at in telling for m in re.finditer(r"[^\W_]{2,}", lines[at])]
    if not words:
        return None
    at, match = rng.choice(words)
    word = match[0]
    altered = word[:-2] + word[-1] + word[-2] if word[-1] != word[-2] else word + word[-1]
    lines[at] = lines[at][: match.start()] + altered + lines[at][match.end() :]
    return "".join(lines).encode()


def _truncate(data: bytes, rng: random.Random) -> bytes | None:
    lines = _lines(data)
    if len(lines) >= 3:
        return b"".join(lines[: -max(1, len(lines) // 4)])
    return data[: len(data) * 2 // 3] if len(data) > 3 else None


def _alter_byte(data: bytes, rng: random.Random) -> bytes | None:
    """Change one byte of the middle half, where formats keep content."""
    at = rng.randrange(len(data) // 4, max(len(data) // 4 + 1, len(data) * 3 // 4))
    return data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1 :]


def _json_of(data: bytes) -> Any:
    """The parsed value of a JSON table or list, else None."""
    try:
        value = json.loads(data)
        is_table = isinstance(value, dict | list) and bool(list(_nodes(value)))
        _dump(value, data)
    except (ValueError, RecursionError):  # lone surrogates and deep nests cannot be written again
        return None
    return value if is_table else None


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) below a JSON value, in document order."""
    keys: Iterable[Any] = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _nodes(value[key])


def _dump(value: Any, like: bytes) -> bytes:
    indent = 2 if b"\n" in like.strip() else None
    return (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode()


def _drop_value(data: bytes, rng: random.Random) -> bytes | None:
    value = _json_of(data)
    container, key = rng.choice(list(_nodes(value)))
    del container[key]
    return _dump(value, data)


def _alter_value(data: bytes, rng: random.Random) -> bytes | None:
    value = _json_of(data)
    leaves = [(c, k) for c, k in _nodes(value) if not isinstance(c[k], dict | list)]
    if not leaves:
        return None
    container, key = rng.choice(leaves)
    container[key] = _other(container[key])
    return _dump(value, data)


def _other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value[:-1]}~" if value else "x"
    return "x"
