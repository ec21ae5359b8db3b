"""The families there are."""

from __future__ import annotations

from evolution.bundle import Bundle
from evolution.families.base import Family, genes_of
from evolution.families.log_forensics.family import LogForensics

FAMILIES: tuple[Family, ...] = (LogForensics(),)


def instruction_of(bundle: Bundle) -> str | None:
    """The instruction that a bundle's family gives it for its genes; None without a family."""
    for family in FAMILIES:
        genes = genes_of(bundle, family)
        if genes is not None:
            return family.instruction(genes)
    return None
