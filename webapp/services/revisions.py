"""Revisions: an environment put right, as a child of its own that claims no new demand.

A bundle is immutable, so what is changed in it becomes a child, one generation on. It keeps its
parent's demands, sequence and kind, so that the gates ask as much of it as of the parent, and has
no direction, aspect, effect or parts: nothing about it was made harder.
"""

from __future__ import annotations

from evolution.bundle import Bundle
from webapp.models import Environment
from webapp.services.environments import add_child


def add_revision(
    parent: Environment, bundle: Bundle, *, operator: str, title: str, why: str
) -> tuple[Environment, bool]:
    """Store a changed bundle under its parent; (environment, whether it is new).

    `operator` names what changed it. Raises CorruptStore where the parent cannot be read.
    """
    return add_child(
        parent,
        bundle,
        ("environment.revised", f"{title}: {why}"),
        kind=parent.kind,
        title=title,
        why=why,
        sequence=parent.sequence,
        demands=parent.demands,
        demands_live=parent.demands_live,
        has_solution="solution/solve.sh" in bundle.by_path,
        operator=operator,
    )
