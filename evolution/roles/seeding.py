"""Randomness is derived, never drawn from a global state: equal inputs, equal choices."""

from __future__ import annotations

import hashlib
import random


def derived_seed(*parts: str | int) -> int:
    """A seed of 56 bits from what it stands for (parent digest, configured seed, purpose …)."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def derived_random(*parts: str | int) -> random.Random:
    """A generator of its own for one purpose."""
    return random.Random(derived_seed(*parts))
