"""A small frozen dataset, for tests of exports."""

from __future__ import annotations

from evolution.bundle import Bundle
from evolution.export_values import (
    ExportedDemand,
    ExportedDifficulty,
    ExportedEnvironment,
    FrozenDataset,
)
from sandbox.contracts import SandboxFile
from tests.evolution.sample_bundles import sample_bundle

SEED = sample_bundle(
    SandboxFile("environment/run", b"\x00", 0o755), SandboxFile("environment/alias", link="run")
)
CHILD = sample_bundle(
    SandboxFile("instruction.md", b"# canary 1234\nDo more.\n"), task_toml="[metadata]\nx = 1\n"
)
BUNDLES = {bundle.digest: bundle for bundle in (SEED, CHILD)}


def load(digest: str) -> Bundle:
    """The bundle of a digest."""
    return BUNDLES[digest]


def sample_dataset(**changes: object) -> FrozenDataset:
    """A seed and its child, frozen; with some fields changed."""
    seed = ExportedEnvironment(
        folder="sample-g0",
        digest=SEED.digest,
        harbor_digest=SEED.harbor_digest,
        task_name="ratchet/sample",
        title="Sample",
        root=SEED.digest,
        parent="",
        generation=0,
        licence="Apache-2.0",
        origin="bundled with Ratchet",
    )
    child = ExportedEnvironment(
        folder="sample-g1",
        digest=CHILD.digest,
        harbor_digest=CHILD.harbor_digest,
        task_name="",
        title='=HYPERLINK("x") | `code` <script>',
        root=SEED.digest,
        parent=SEED.digest,
        generation=1,
        licence="Apache-2.0 | <b>",
        origin="bundled with Ratchet",
        direction="scenario",
        aspect="constraints",
        effort="low",
        operators=("foreign_encoding",),
        demands=(ExportedDemand("d1", "foreign_encoding", "UTF-16", ("d1.decoded",)),),
        difficulty=(ExportedDifficulty("pass_rate", 0.5, "agent", 8, 0.2, 0.8, "4 of 8"),),
    )
    fields: dict[str, object] = {
        "name": "Sample set",
        "slug": "sample-set",
        "version": "3",
        "digest": "ab" * 32,
        "frozen_at": "2026-01-02T03:04:05+00:00",
        "environments": (seed, child),
        "description": 'Two "environments"\nand a \x7f control',
    }
    return FrozenDataset(**{**fields, **changes})  # type: ignore[arg-type]
