"""The logs, line by line, however large they are."""

import bz2
from collections.abc import Iterator
from pathlib import Path


def logs(folder: Path) -> list[Path]:
    """All logs, by host."""
    return sorted(folder.glob("*.log*"))


def lines(path: Path) -> Iterator[str]:
    """The lines of a log, one at a time."""
    with bz2.open(path, "rt") if path.suffix == ".bz2" else open(path) as file:
        for line in file:
            yield line.rstrip("\n")
