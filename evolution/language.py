"""Everything is written in English; what is in another script altogether is sent back."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

MOST_FOREIGN = 0.3
"""The share of letters of other scripts that names and examples may have."""
FEWEST = 12
"""Letters below which nothing can be told."""


def is_foreign(text: str) -> bool:
    """Whether a text is mostly in another script than the Latin one."""
    letters = [letter for letter in text if letter.isalpha()]
    if len(letters) < FEWEST:
        return False
    other = sum(not unicodedata.name(letter, "LATIN").startswith("LATIN") for letter in letters)
    return other > MOST_FOREIGN * len(letters)


def language_complaint(texts: Iterable[str]) -> str | None:
    """One line for a model that wrote in another script; None when all is well."""
    return "write in English" if any(map(is_foreign, texts)) else None
