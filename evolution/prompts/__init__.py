"""The words with which roles are told what to do: text files, known by their digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as resources


@dataclass(frozen=True, slots=True)
class Prompt:
    """One role's standing instructions. `digest` is their version: SHA-256 in hex of the text."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


DATA = "data"
"""What stands in every prompt: how foreign text is marked, and that it commands nobody."""


@cache
def prompt(name: str, *parts: str) -> Prompt:
    """The prompt of that name: its own file after those of `parts`, which several roles share.

    Every role is told that data is not instructions.

    Raises FileNotFoundError for a name that there is no file for.
    """
    folder = resources(__name__)
    texts = [
        folder.joinpath(f"{part}.md").read_text("utf-8").strip() for part in (*parts, DATA, name)
    ]
    return Prompt(name, "\n\n".join(texts) + "\n")
