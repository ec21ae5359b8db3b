"""The logs, read as they come."""

import bz2
from pathlib import Path


def logs(folder: Path) -> list[Path]:
    """All logs, by host."""
    return sorted(folder.glob("*.log*"))


def lines(path: Path) -> list[str]:
    """The lines of a log."""
    data = path.read_bytes()
    text = bz2.decompress(data).decode() if path.suffix == ".bz2" else data.decode()
    words = [line.split(" ") for line in text.splitlines()]
    return [" ".join(line) for line in words]
