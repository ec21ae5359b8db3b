"""Runs inside Harbor's own virtual environment: one JSON question a line, one answer a line."""

import json
import sys
import warnings
from pathlib import Path

from harbor.models.dataset.manifest import DatasetManifest
from harbor.models.registry import Registry
from harbor.models.task.task import Task, strip_canary
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
from harbor.models.trajectories import Trajectory
from harbor.publisher.packager import Packager

warnings.simplefilter("ignore")


def task(path: str) -> dict[str, object]:
    """What Harbor makes of a task folder."""
    parsed = Task(path)
    config = parsed.config
    definition = resolve_verifier_environment_definition(config, parsed.paths)
    return {
        "name": parsed.name,
        "instruction": parsed.instruction,
        "is_valid": Task.is_valid_dir(path),
        "digest": Packager.compute_content_hash(Path(path))[0],
        "is_separate": definition is not None,
        "has_bundled_tests": definition is not None and definition.bundled_tests,
        "agent_timeout": config.agent.timeout_sec,
        "verifier_timeout": config.verifier.timeout_sec,
        "network": config.environment.network_mode.value,
        "memory_mb": config.environment.memory_mb,
        "cpus": config.environment.cpus,
        "metadata": json.loads(json.dumps(config.metadata, default=str)),
    }


def digest(path: str) -> dict[str, object]:
    """The content digest of a folder, task or not."""
    return {"digest": Packager.compute_content_hash(Path(path))[0]}


def dataset(path: str) -> dict[str, object]:
    """What Harbor reads from a dataset.toml."""
    manifest = DatasetManifest.from_toml_file(Path(path))
    return {
        "name": manifest.dataset.name,
        "tasks": [[ref.name, ref.digest] for ref in manifest.tasks],
    }


def registry(path: str) -> dict[str, object]:
    """What Harbor reads from a registry.json."""
    parsed = Registry.from_path(Path(path))
    return {
        "datasets": [
            [spec.name, spec.version, [str(task.path) for task in spec.tasks]]
            for spec in parsed.datasets
        ]
    }


def canary(text: str) -> dict[str, object]:
    """An instruction as Harbor shows it."""
    return {"text": strip_canary(text)}


def trajectory(path: str) -> dict[str, object]:
    """What Harbor reads from a trajectory."""
    parsed = Trajectory.model_validate_json(Path(path).read_text())
    return {
        "version": parsed.schema_version,
        "sources": [step.source for step in parsed.steps],
        "observed": [step.observation is not None for step in parsed.steps],
    }


QUESTIONS = {f.__name__: f for f in (task, digest, dataset, registry, canary, trajectory)}

for line in sys.stdin:
    question, argument = json.loads(line)
    try:
        answer = QUESTIONS[question](argument)
    except Exception as error:  # an answer too: what Harbor refuses, and how
        answer = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
