"""What is put before the gates: bundles with what is known of them, made here or read from disk."""

from __future__ import annotations

import json
import math
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from bench.cases import BenchError
from evolution.bundle import Bundle
from evolution.plain_text import plain
from evolution.reading import Refusal, find_bundles

SOUND = "sound"
ORIGINS = ("imported", "made")
MANIFESTS = ("manifest.jsonl", "manifest.toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """One bundle. `label` is `SOUND` or the kind of its defect; `origin` decides the policy.

    `others` are bundles by name that it must not repeat; `about` says in one line what is wrong.
    """

    name: str
    label: str
    bundle: Bundle
    origin: str = "imported"
    others: tuple[tuple[str, Bundle], ...] = ()
    about: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether every gate has to pass it."""
        return self.label == SOUND


def read_corpus(folder: Path) -> tuple[Entry, ...]:
    """The entries that a folder's manifest lists.

    The manifest is `manifest.jsonl`, one object per line, or `manifest.toml` with `[[bundle]]`
    tables. Keys: `path` (a bundle, relative to the folder), `label` ("sound" or a kind of defect),
    `kind` ("imported" or "made"; imported unless said), `others` (paths of bundles that it must
    not repeat). Raises BenchError with the place of the first thing that is wrong.
    """
    found = [folder / name for name in MANIFESTS if (folder / name).is_file()]
    if len(found) != 1:
        raise BenchError(f"{folder}: one of {' and '.join(MANIFESTS)} has to be there")
    entries = []
    for place, row in _rows(found[0]):
        path, label = row.get("path"), row.get("label")
        origin, others = row.get("kind", ORIGINS[0]), row.get("others", [])
        if not (_is_line(path) and _is_line(label)):
            raise BenchError(f"{place}: `path` and `label` have to be texts of one line")
        if origin not in ORIGINS:
            raise BenchError(f"{place}: `kind` is one of {', '.join(ORIGINS)}, not {origin!r}")
        if not (isinstance(others, list) and all(map(_is_line, others))):
            raise BenchError(f"{place}: `others` has to be a list of paths")
        known = tuple((other, _bundle(folder / other, place)) for other in others)
        entries.append(Entry(path, label, _bundle(folder / path, place), origin, known))
    if not entries:
        raise BenchError(f"{found[0]}: no bundle is listed")
    return tuple(entries)


def _is_line(value: Any) -> TypeGuard[str]:
    """Whether it is a text that a path and a table can hold."""
    return isinstance(value, str) and bool(value) and plain(value) == value


def _rows(manifest: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a manifest, each with its place."""
    try:
        text = manifest.read_text(encoding="utf-8")
        if manifest.suffix == ".toml":
            rows = tomllib.loads(text).get("bundle", [])
            if not isinstance(rows, list):
                raise BenchError(f"{manifest}: the bundles have to be [[bundle]] tables")
            numbered: Iterable[tuple[int, Any]] = enumerate(rows, 1)
        else:
            lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
            numbered = [(n, json.loads(line)) for n, line in lines]
    except (OSError, ValueError, RecursionError) as error:
        raise BenchError(f"{manifest}: {error}") from error
    for number, row in numbered:
        if not isinstance(row, dict):
            raise BenchError(f"{manifest}:{number}: not an object")
        yield f"{manifest}:{number}", row


def _bundle(path: Path, place: str) -> Bundle:
    try:
        found = list(find_bundles(path)) if path.exists() else []
    except OSError as error:  # a name that is too long, a folder that may not be read
        raise BenchError(f"{place}: {error.strerror}: {str(path)[:200]}") from error
    if len(found) != 1:
        raise BenchError(f"{place}: {path} holds {len(found)} bundles, not one")
    if isinstance(found[0], Refusal):
        raise BenchError(f"{place}: {found[0]}")
    return found[0].bundle


def shared_out(entries: Iterable[Entry], share: float) -> tuple[Entry, ...]:
    """A share of the entries, the same every time, and at least one of every label."""
    by_label: dict[str, list[Entry]] = {}
    for entry in entries:
        by_label.setdefault(entry.label, []).append(entry)
    kept: list[Entry] = []
    for label, own in by_label.items():
        count = max(1, math.ceil(share * len(own) - 1e-9))
        turn = zlib.crc32(label.encode()) % len(own)
        kept += [own[(turn + at * len(own) // count) % len(own)] for at in range(count)]
    return tuple(kept)
