"""Values as the bytes of files, and words to make data of."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from random import Random

NAMES = (
    *("Adler", "Bosse", "Cramer", "Dahl", "Ekberg", "Falk", "Gruber", "Holm", "Ilves", "Jansen"),
    *("Keller", "Lund", "Moser", "Novak", "Olsen", "Pohl", "Quist", "Rask", "Sommer", "Toth"),
)
PLACES = ("aarau", "bergen", "cork", "delft", "espoo", "fano", "gent", "husum", "imola", "jena")
GOODS = ("anvil", "bolt", "cable", "drill", "easel", "funnel", "gasket", "hinge", "iron", "jack")
WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "flint", "grove", "haven", "inlet", "jetty"),
    *("knoll", "ledge", "marsh", "north", "ocean", "plain", "quarry", "ridge", "shore", "trail"),
)


def as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    """Comma-separated, quoted only where needed, lines ended by a line feed."""
    target = io.StringIO()
    csv.writer(target, lineterminator="\n").writerows(rows)
    return target.getvalue().encode()


def as_tsv(rows: Iterable[Sequence[object]]) -> bytes:
    """Separated by tabs, never quoted."""
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()


def as_json(value: object) -> bytes:
    """Indented JSON."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def as_lines(lines: Iterable[object]) -> bytes:
    """One a line."""
    return "".join(f"{line}\n" for line in lines).encode()


def stamp(seconds: int) -> str:
    """Seconds since a fixed midnight of UTC as a time of ISO 8601."""
    days, rest = divmod(seconds, 86400)
    return f"2025-03-{1 + days:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}Z"


def python(source: str) -> str:
    """A step of a shell script that runs this Python."""
    return f"python3 - <<'PY'\n{source.strip()}\nPY\n"


def some(rng: Random, things: Sequence[str], low: int, high: int) -> list[str]:
    """Some of these things, each once."""
    return rng.sample(list(things), rng.randint(low, min(high, len(things))))
