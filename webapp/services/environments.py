"""Environments enter the store: seeds by import, children by evolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F

from evolution.bundle import Bundle
from evolution.contracts import Demand, Mutation, Plan, Subject
from evolution.harbor import harbor_digest
from evolution.mutation_rates import mutation_rates
from evolution.plain_text import plain
from evolution.sequence import Pair, assumed_sequence
from webapp.models import (
    Environment,
    EnvironmentKind,
    EvolutionRun,
    EvolutionStep,
    Lineage,
    MeasuredTrial,
)
from webapp.services.difficulty import refresh_measured
from webapp.services.events import append_event
from webapp.store import load_bundle, load_packed, save_bundle, save_packed

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def path_step(ordinal: int) -> str:
    """Three base-36 digits: the place among up to 46,656 siblings, in sorting order."""
    first, rest = divmod(ordinal, 36 * 36)
    second, third = divmod(rest, 36)
    return _DIGITS[first] + _DIGITS[second] + _DIGITS[third]


def import_seed(
    bundle: Bundle, *, name: str, origin: str, tags: Sequence[str] = ()
) -> tuple[Environment, bool]:
    """Store a bundle as the root of a new lineage; (environment, whether it is new).

    The same bundle twice is one seed. Its licence and origin are taken from `task.toml` where it
    states them, else `origin` is where it was imported from.
    """
    known = Environment.objects.filter(digest=bundle.digest, parent=None).first()
    if known is not None:
        return known, False
    name = _said(name, 200)
    metadata = _table(bundle.config, "metadata")
    ratchet = _table(metadata, "ratchet")
    rows = [row for row in _list(ratchet, "sequence") if isinstance(row, dict)]
    sequence = tuple(map(_pair, rows)) or assumed_sequence(bundle.config)
    keywords = _list(_table(bundle.config, "task"), "keywords")
    try:
        with transaction.atomic():
            lineage = Lineage.objects.create(
                name=name,
                licence=_said(metadata.get("license", metadata.get("licence", "")), 200),
                origin=_said(metadata.get("origin", origin), 500),
                tags=sorted({*tags, *(_said(word, 200) for word in keywords)}),
                seed_digest=bundle.digest,
                node_count=1,
            )
            environment = Environment.objects.create(
                lineage=lineage,
                generation=0,
                path=path_step(0),
                kind=EnvironmentKind.IMPORTED,
                name=name,
                title=name,
                instruction=bundle.instruction,
                root_instruction=bundle.instruction,
                sequence=msgspec.to_builtins(sequence),
                has_solution="solution/solve.sh" in bundle.by_path,
                **_content(bundle),
            )
            append_event("environment.imported", f"Imported from {origin}", environment=environment)
            adopt_measured_trials(environment)
    except IntegrityError:
        return Environment.objects.get(digest=bundle.digest, parent=None), False
    return environment, True


def add_candidate(
    step: EvolutionStep, plan: Plan, mutation: Mutation, repair: int
) -> tuple[Environment, bool]:
    """Store a built child under the step's parent; (environment, whether it is new)."""
    demand = mutation.demand
    live = [*step.parent.demands, msgspec.to_builtins(demand)]
    return add_child(
        step.parent,
        mutation.child,
        ("environment.built", f"{demand.title} ({demand.operator})"),
        mutation=mutation,
        run=step.run,
        step=step,
        kind=EnvironmentKind.EVOLVED,
        title=demand.title,
        why=demand.why,
        sequence=msgspec.to_builtins(mutation.sequence),
        demands=live,
        demands_live=len(live),
        direction=demand.direction,
        aspect=demand.aspect,
        effect=demand.effect,
        effort=plan.effort,
        operator=demand.operator,
        notch=demand.notch,
        repair=repair,
    )


def add_child(
    parent: Environment,
    bundle: Bundle,
    told: tuple[str, str],
    *,
    title: str,
    mutation: Mutation | None = None,
    run: EvolutionRun | None = None,
    step: EvolutionStep | None = None,
    **fields: Any,
) -> tuple[Environment, bool]:
    """Store a bundle under its parent, one generation on; (environment, whether it is new).

    `told` is the event's kind and text, `mutation` holds the parts that prove its demand. Raises
    CorruptStore where the parent or the seed cannot be read.
    """
    same = Environment.objects.filter(parent=parent, digest=bundle.digest)
    if (known := same.first()) is not None:
        return known, False
    parts = save_packed(msgspec.json.encode(mutation)) if mutation is not None else ""
    fields |= {"parts_digest": parts, "change_rates": _rates(parent, bundle), **_content(bundle)}
    kind, text = told
    with transaction.atomic():
        lineage = Lineage.objects.select_for_update().get(pk=parent.lineage_id)
        if (known := same.first()) is not None:  # made while we waited for the lineage
            return known, False
        siblings = Environment.objects.filter(parent=parent).count()
        environment = Environment.objects.create(
            lineage=lineage,
            parent=parent,
            generation=parent.generation + 1,
            path=f"{parent.path}.{path_step(siblings)}",
            name=lineage.name,
            title=title[:300],
            instruction=bundle.instruction,
            root_instruction=parent.root_instruction,
            run=run,
            step=step,
            **fields,
        )
        Lineage.objects.filter(pk=lineage.pk).update(
            node_count=F("node_count") + 1,
            max_generation=max(lineage.max_generation, environment.generation),
        )
        append_event(kind, text[:2000], environment=environment, run=run, step=step)
    return environment, True


def renew_proof(environment: Environment, mutation: Mutation) -> None:
    """Store the parts that prove a candidate's demand now: its bundle is the same, they are not."""
    parts = save_packed(msgspec.json.encode(mutation))
    if parts == environment.parts_digest:
        return
    demand = mutation.demand
    environment.parts_digest = parts
    environment.demands = [*environment.demands[:-1], msgspec.to_builtins(demand)]
    environment.title, environment.why = demand.title[:300], demand.why
    with transaction.atomic():
        environment.save(update_fields=["parts_digest", "demands", "title", "why", "updated_at"])
        append_event(
            "environment.proof_renewed",
            "The same bundle with another wrong solution, or other checks named",
            environment=environment,
            run=environment.run,
            step=environment.step,
        )


def load_subject(environment: Environment) -> Subject:
    """An environment as the engine sees it. Raises CorruptStore."""
    bundle = load_bundle(environment)
    sequence = tuple(msgspec.convert(environment.sequence, list[Pair]))
    return Subject(
        bundle=bundle,
        sequence=sequence or assumed_sequence(bundle.config),
        demands=tuple(msgspec.convert(environment.demands, list[Demand])),
        root_instruction=environment.root_instruction,
        generation=environment.generation,
    )


def load_mutation(environment: Environment) -> Mutation | None:
    """The parts that prove an evolved environment's demand; None for a seed."""
    if not environment.parts_digest:
        return None
    return msgspec.json.decode(load_packed(environment.parts_digest), type=Mutation)


def adopt_measured_trials(environment: Environment) -> int:
    """Attach trials that were imported before their environment was known."""
    if not environment.is_seed:
        return 0
    names = {environment.name, environment.name.rsplit("/", 1)[-1]}
    rows = MeasuredTrial.objects.filter(environment=None, environment_name__in=names)
    count = rows.update(environment=environment)
    if count:
        refresh_measured([environment])
    return count


def _content(bundle: Bundle) -> dict[str, Any]:
    return {
        "digest": bundle.digest,
        "harbor_digest": harbor_digest(bundle.files),
        "manifest": save_bundle(bundle),
    }


def _rates(parent: Environment, child: Bundle) -> dict[str, dict[str, float]]:
    before = root = load_bundle(parent)
    if not parent.is_seed:
        root = load_bundle(Environment.objects.get(lineage_id=parent.lineage_id, parent=None))
    return {
        "parent": msgspec.to_builtins(mutation_rates(before, child)),
        "root": msgspec.to_builtins(mutation_rates(root, child)),
    }


def _table(source: Any, key: str) -> dict[str, Any]:
    value = source.get(key, {})
    return value if isinstance(value, dict) else {}


def _list(source: dict[str, Any], key: str) -> list[Any]:
    value = source.get(key)
    return value if isinstance(value, list) else []


def _pair(row: dict[str, Any]) -> Pair:
    return Pair(_said(row.get("scenario", ""), 200), _said(row.get("skill", ""), 200))


def _said(value: Any, cap: int) -> str:
    """A value of `task.toml` as a short line that the database can keep: TOML may say NUL."""
    return plain(str(value))[:cap]
