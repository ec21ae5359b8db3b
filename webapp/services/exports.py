"""Frozen dataset versions as files: the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from evolution.bundle import Bundle
from evolution.contracts import Demand
from evolution.export_values import (
    ExportedDemand,
    ExportedDifficulty,
    ExportedEnvironment,
    FrozenDataset,
)
from evolution.exporting import export_archive, export_files
from evolution.writing import write_tree
from webapp.models import DatasetMember, DatasetVersion, DifficultyScore, Environment, SolverKind
from webapp.store import load_bundle


def open_archive(version: DatasetVersion) -> Iterator[bytes]:
    """A version as a `.tar.gz`, in chunks. Raises CorruptStore or BundleError."""
    return export_archive(_frozen(version), _loader(version))


def export_folder(version: DatasetVersion, target: Path) -> int:
    """Write a version to a new folder; returns the number of environments.

    Raises FileExistsError when something is there already, OSError when the disk refuses.
    """
    write_tree(export_files(_frozen(version), _loader(version)), target)
    return version.member_count


def _frozen(version: DatasetVersion) -> FrozenDataset:
    return msgspec.convert(version.frozen, FrozenDataset)


def describe(version: DatasetVersion) -> FrozenDataset:
    """A version as the plain values that an export is made from; called once, when it is frozen."""
    members = (
        version.members.select_related(
            "environment__lineage", "environment__parent", "environment__current_verification"
        )
        .prefetch_related("environment__scores__solver")
        .order_by("name")
    )
    return FrozenDataset(
        name=version.dataset.name,
        slug=version.dataset.slug,
        version=str(version.number),
        digest=version.digest,
        frozen_at=version.frozen_at.isoformat(timespec="seconds"),
        environments=tuple(_exported(member) for member in members),
        description=version.notes or version.dataset.description,
    )


def _loader(version: DatasetVersion) -> Callable[[str], Bundle]:
    ids = dict(version.members.values_list("digest", "environment_id"))
    return lambda digest: load_bundle(Environment.objects.get(pk=ids[digest]))


def _exported(member: DatasetMember) -> ExportedEnvironment:
    environment = member.environment
    demands = msgspec.convert(environment.demands, list[Demand])
    parent, verification = environment.parent, environment.current_verification
    return ExportedEnvironment(
        folder=member.name,
        digest=environment.digest,
        harbor_digest=environment.harbor_digest,
        task_name=environment.name,
        title=environment.title,
        root=environment.lineage.seed_digest,
        parent=parent.digest if parent else "",
        generation=environment.generation,
        licence=environment.lineage.licence,
        origin=environment.lineage.origin,
        direction=environment.direction,
        aspect=environment.aspect,
        effort=environment.effort,
        operators=tuple(demand.operator for demand in demands),
        demands=tuple(ExportedDemand(d.id, d.operator, d.title, d.checks) for d in demands),
        difficulty=tuple(_score(score) for score in _scores(environment)),
        verified_by=verification.backend if verification else "",
        is_verified_on_image=verification.is_on_image if verification else None,
    )


def _scores(environment: Environment) -> list[DifficultyScore]:
    """What is exported as difficulty: never what a simulated solver did."""
    found = [
        score
        for score in environment.scores.all()
        if score.solver is None or score.solver.kind != SolverKind.SIMULATED
    ]
    return sorted(found, key=lambda score: (score.measure, score.solver_id or 0))


def _score(score: DifficultyScore) -> ExportedDifficulty:
    return ExportedDifficulty(
        measure=score.measure,
        value=round(score.value, 6),
        solver=score.solver.name if score.solver else "",
        n=score.n,
        low=score.low,
        high=score.high,
        basis=score.basis,
    )
