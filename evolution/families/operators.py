"""The operators of all families."""

from __future__ import annotations

from evolution.families.gene_operator import GeneOperator
from evolution.families.log_forensics.family import LogForensics
from evolution.families.log_forensics.genes import GENES as LOG_FORENSICS

OPERATORS: tuple[GeneOperator, ...] = tuple(
    GeneOperator(LogForensics(), gene) for gene in LOG_FORENSICS
)
"""In a fixed order."""
