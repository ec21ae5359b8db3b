"""What a family is: a parametric generator of whole environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile


class Family(Protocol):
    """A parametric generator of whole environments."""

    name: str
    slug: str
    """Its folder below `seeds/`: all genes at 0."""
    genes: Mapping[str, int]
    """The genes with their highest notch."""

    def render(self, genes: Mapping[str, int]) -> Bundle:
        """The environment of these genes, the same on every machine."""
        ...

    def instruction(self, genes: Mapping[str, int]) -> str:
        """What the solver is told, for these genes."""
        ...

    def module(self, gene: str, is_full: bool) -> SandboxFile:
        """The part of the solution that meets a gene's demand, or its plain form."""
        ...

    def check(self, gene: str) -> str:
        """The check that a gene brings."""
        ...


def genes_of(bundle: Bundle, family: Family) -> dict[str, int] | None:
    """The genes that a bundle says it has, None when it is not of this family."""
    metadata = bundle.config.get("metadata")
    own = metadata.get("ratchet") if isinstance(metadata, dict) else None
    if not isinstance(own, dict) or own.get("family") != family.name:
        return None
    said = own.get("genes")
    if not isinstance(said, dict) or set(said) != set(family.genes):
        return None
    is_known = all(
        type(value) is int and 0 <= value <= family.genes[gene] for gene, value in said.items()
    )
    return {gene: said[gene] for gene in family.genes} if is_known else None
