"""Harbor's own parser takes what we ship, and reads from it what we read."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution.execution import has_bundled_tests, limits, network, task_config
from evolution.reading import FoundBundle, find_bundles
from evolution.validation import first_error
from evolution.writing import write_bundle
from sandbox.contracts import SandboxFile
from tests.evolution.sample_bundles import TASK_TOML, sample_bundle
from tests.interop.conftest import Harbor

pytestmark = pytest.mark.interop

SEEDS = Path(__file__).resolve().parents[2] / "seeds"


def test_harbor_takes_every_bundled_seed(harbor: Harbor) -> None:
    found = list(find_bundles(SEEDS))
    assert len(found) >= 10
    for seed in found:
        assert isinstance(seed, FoundBundle), str(seed)
        answer = harbor.ask("task", seed.origin)
        assert answer.get("is_valid") is True, (seed.origin, answer)
        assert answer["name"] == seed.name
        assert answer["digest"] == seed.bundle.harbor_digest
        assert answer["instruction"] == seed.bundle.displayed_instruction
        assert answer["is_separate"] is True
        assert answer["network"] == "no-network"


def test_an_untouched_round_trip_is_the_same_to_us_and_to_harbor(
    harbor: Harbor, tmp_path: Path
) -> None:
    bundle = sample_bundle(
        SandboxFile("environment/run", b"x", 0o755),
        SandboxFile("environment/alias", link="run"),
        SandboxFile("LICENSE", b"free"),
    )
    write_bundle(bundle, tmp_path / "first")
    (found,) = find_bundles(tmp_path / "first")
    assert isinstance(found, FoundBundle)
    assert found.bundle == bundle
    assert harbor.ask("task", tmp_path / "first")["digest"] == bundle.harbor_digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('network_mode = "no-network"', "allow_internet = false"),
        ('network_mode = "no-network"', 'allow_internet = false\nnetwork_mode = "public"'),
        ('network_mode = "no-network"', ""),
        ("memory_mb = 512", 'memory = "2G"'),
        ("memory_mb = 512", "memory = 2048"),
        ("cpus = 1", "cpus = 2.5"),
        ("timeout_sec = 60.0", ""),
        ('environment_mode = "separate"', ""),
        ('environment_mode = "separate"', '[verifier.environment]\ndocker_image = "x:1"'),
    ],
)
def test_what_task_toml_means_is_what_harbor_says(
    harbor: Harbor, tmp_path: Path, old: str, new: str
) -> None:
    assert old in TASK_TOML
    bundle = sample_bundle(task_toml=TASK_TOML.replace(old, new))
    write_bundle(bundle, tmp_path / "task")
    answer = harbor.ask("task", tmp_path / "task")
    assert "error" not in answer, answer
    config, ceilings = task_config(bundle), limits(bundle)
    assert answer["network"] == network(bundle).mode.value
    assert answer["cpus"] == ceilings.cpus
    assert (answer["memory_mb"] or 0) * 1024 * 1024 == (ceilings.memory_bytes or 0)
    assert answer["agent_timeout"] == config.agent_timeout_seconds
    assert answer["verifier_timeout"] == config.verifier_timeout_seconds
    assert answer["is_separate"] == config.is_separate
    assert answer["has_bundled_tests"] == has_bundled_tests(bundle, config)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('schema_version = "1.4"', "schema_version = 1.4"),
        ('name = "ratchet/sample"', 'name = "sample"'),
        ('network_mode = "no-network"', 'network_mode = "none"'),
        ('network_mode = "no-network"', 'network_mode = "public"\nallowed_hosts = ["a.org"]'),
        ("cpus = 1", "cpus = nan"),
        ('artifacts = ["/app/out"]', 'artifacts = ["/app/../etc"]'),
        ('environment_mode = "separate"', 'environment_mode = "other"'),
    ],
)
def test_what_harbor_refuses_in_task_toml_we_refuse(
    harbor: Harbor, tmp_path: Path, old: str, new: str
) -> None:
    assert old in TASK_TOML
    bundle = sample_bundle(task_toml=TASK_TOML.replace(old, new))
    write_bundle(bundle, tmp_path / "task")
    assert "error" in harbor.ask("task", tmp_path / "task")
    problem = first_error(bundle)
    assert problem is not None
    assert problem.path == "task.toml"
