"""The family itself, as others see it."""

from __future__ import annotations

from collections.abc import Mapping

from evolution.bundle import Bundle
from evolution.families.log_forensics import render
from sandbox.contracts import SandboxFile


class LogForensics:
    """Password guessing and break-ins, to be found in the logs of several hosts."""

    name = "log_forensics"
    slug = render.SLUG
    genes: Mapping[str, int] = render.GENES

    def render(self, genes: Mapping[str, int]) -> Bundle:
        """See `Family.render`."""
        return render.render(genes)

    def instruction(self, genes: Mapping[str, int]) -> str:
        """See `Family.instruction`."""
        return render.instruction(genes)

    def module(self, gene: str, is_full: bool) -> SandboxFile:
        """See `Family.module`."""
        return render.module(gene, is_full)

    def check(self, gene: str) -> str:
        """See `Family.check`."""
        return render.check_of(gene)
