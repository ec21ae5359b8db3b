"""Findings are lines between the roles; one that judges an operator begins with its name."""

from __future__ import annotations

from collections.abc import Iterable


def finding(operator: str, reason: str) -> str:
    """One line on an operator that did not do here."""
    return f"{operator}: {reason}"


def judged_operators(findings: Iterable[str]) -> frozenset[str]:
    """The operators that some findings judge."""
    return frozenset(line.partition(":")[0] for line in findings if ":" in line)
