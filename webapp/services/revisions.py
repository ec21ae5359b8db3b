"""Revisions: an environment put right, as a child of its own that claims no new demand.

A bundle is immutable, so what is changed in it becomes a child, one generation on. It keeps its
parent's demands, sequence and kind, so that the gates ask as much of it as of the parent, and has
no direction, aspect, effect or parts: nothing about it was made harder.
"""

from __future__ import annotations

import msgspec
from django.db import transaction
from django.db.models import F

from evolution.bundle import Bundle
from evolution.harbor import harbor_digest
from evolution.mutation_rates import mutation_rates
from webapp.models import Environment, Lineage
from webapp.services.environments import path_step
from webapp.services.events import append_event
from webapp.store import load_bundle, save_bundle


def add_revision(
    parent: Environment, bundle: Bundle, *, operator: str, title: str, why: str
) -> tuple[Environment, bool]:
    """Store a changed bundle under its parent; (environment, whether it is new).

    `operator` names what changed it. Raises CorruptStore where the parent cannot be read.
    """
    known = Environment.objects.filter(parent=parent, digest=bundle.digest).first()
    if known is not None:
        return known, False
    old = load_bundle(parent)
    manifest = save_bundle(bundle)
    root = Environment.objects.get(lineage_id=parent.lineage_id, parent=None)
    with transaction.atomic():
        lineage = Lineage.objects.select_for_update().get(pk=parent.lineage_id)
        siblings = Environment.objects.filter(parent=parent).count()
        environment = Environment.objects.create(
            lineage=lineage,
            parent=parent,
            generation=parent.generation + 1,
            path=f"{parent.path}.{path_step(siblings)}",
            kind=parent.kind,
            name=parent.lineage.name,
            title=title[:300],
            why=why,
            digest=bundle.digest,
            harbor_digest=harbor_digest(bundle.files),
            manifest=manifest,
            instruction=bundle.instruction,
            root_instruction=parent.root_instruction,
            sequence=parent.sequence,
            demands=parent.demands,
            demands_live=parent.demands_live,
            has_solution=parent.has_solution,
            operator=operator,
            change_rates={
                "parent": _rates(old, bundle),
                "root": _rates(load_bundle(root), bundle),
            },
        )
        Lineage.objects.filter(pk=lineage.pk).update(
            node_count=F("node_count") + 1,
            max_generation=max(lineage.max_generation, environment.generation),
        )
        append_event("environment.revised", f"{title}: {why}"[:2000], environment=environment)
    return environment, True


def _rates(before: Bundle, after: Bundle) -> dict[str, float]:
    rates: dict[str, float] = msgspec.to_builtins(mutation_rates(before, after))
    return rates
