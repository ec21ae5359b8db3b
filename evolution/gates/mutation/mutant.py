"""What a mutant is, and how a text and its damaged form are shown."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff

from sandbox.contracts import SandboxFile

DIFF_LINES = 16
LINE_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Mutant:
    """One damage. `files` is a whole solution (paths below `solution/`), or `state` a whole state.

    Exactly one of the two is set. `path` is the file that was damaged, `diff` shows how.
    """

    kind: str
    path: str
    diff: str
    files: tuple[SandboxFile, ...] | None = None
    state: tuple[SandboxFile, ...] | None = None

    @property
    def label(self) -> str:
        """The mutant in a few words."""
        return f"{self.kind}: {self.path}"


def text_of(data: bytes) -> str | None:
    """The text of some bytes, or None when they are binary."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def show(before: bytes, after: bytes | None) -> str:
    """A short unified diff, or a line on sizes where a diff says nothing."""
    if after is None:
        return "(the file is gone)"
    old, new = text_of(before), text_of(after)
    if old is None or new is None:
        return f"({len(before)} bytes before, {len(after)} after)"
    lines = list(unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]
    more = [f"… {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return "\n".join([line[:LINE_CHARACTERS] for line in lines[:DIFF_LINES]] + more)
