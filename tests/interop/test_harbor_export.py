"""Harbor reads what we export: every task, its digest, and both of its own lists."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from evolution.export_values import ExportedEnvironment
from evolution.exporting import export_archive
from evolution.reading import FoundBundle, find_bundles
from tests.evolution.sample_dataset import load, sample_dataset
from tests.interop.conftest import Harbor

pytestmark = pytest.mark.interop

SEEDS = Path(__file__).resolve().parents[2] / "seeds"


def _unpacked(folder: Path, archive: bytes) -> Path:
    (folder / "export.tar.gz").write_bytes(archive)
    subprocess.run(["tar", "-xzf", "export.tar.gz"], cwd=folder, check=True)
    return folder / "sample-set-v3"


def test_harbor_reads_every_exported_seed_with_our_digest(harbor: Harbor, tmp_path: Path) -> None:
    seeds = {f.bundle.digest: f for f in find_bundles(SEEDS) if isinstance(f, FoundBundle)}
    environments = tuple(
        ExportedEnvironment(
            folder=Path(seed.origin).name,
            digest=digest,
            harbor_digest=seed.bundle.harbor_digest,
            task_name=seed.name,
            title=seed.name,
            root=digest,
            parent="",
            generation=0,
            licence="Apache-2.0",
            origin="bundled",
        )
        for digest, seed in seeds.items()
    )
    dataset = sample_dataset(environments=environments)
    archive = b"".join(export_archive(dataset, lambda digest: seeds[digest].bundle))
    folder = _unpacked(tmp_path, archive)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert len(manifest["environments"]) == len(seeds)
    for environment in manifest["environments"]:
        answer = harbor.ask("task", folder / environment["path"])
        assert answer.get("is_valid") is True, (environment["path"], answer)
        assert answer["digest"] == environment["harbor_digest"]
        assert answer["name"] == environment["task_name"]


def test_harbor_reads_the_lists_of_an_export(harbor: Harbor, tmp_path: Path) -> None:
    folder = _unpacked(tmp_path, b"".join(export_archive(sample_dataset(), load)))
    dataset = harbor.ask("dataset", folder / "dataset.toml")
    assert dataset["name"] == "ratchet/sample-set"
    assert [digest for _, digest in dataset["tasks"]] == [
        f"sha256:{environment.harbor_digest}" for environment in sample_dataset().environments
    ]
    registry = harbor.ask("registry", folder / "registry.json")
    assert registry["datasets"] == [["sample-set", "3", ["tasks/sample-g0", "tasks/sample-g1"]]]
