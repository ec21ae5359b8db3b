"""Families: parametric generators of whole environments."""

from __future__ import annotations

from evolution.bundle import Bundle


def instruction_of(bundle: Bundle) -> str | None:
    """The instruction that a bundle's family gives it for its genes; None without a family."""
    return None
