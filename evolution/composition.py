"""The composed layout: any bundle, rearranged once so that demands can be stacked on it.

`solution/solve.sh` runs `solution/steps/*.sh` in order, the original being `50-base.sh`; steps
below 50 prepare its inputs, steps above 50 work on its outputs. `tests/test.sh` runs the original
tests (`tests/base_test.sh`) and then the checks of every demand (`tests/demands/<id>.py`). Leaving
one demand's adaptation out is removing, or replacing, its step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files as resources
from typing import Any

import tomlkit

from evolution.bundle import Bundle, with_config
from evolution.sequence import Sequence
from sandbox.contracts import SandboxFile

BASE_STEP = "solution/steps/50-base.sh"
BASE_SOLUTION = "solution/base_solve.sh"
BASE_TESTS = "tests/base_test.sh"
DRIVER_OF_CHECKS = "tests/run_demands.py"
BASE_CHECK = "base"
"""The name of the one check that a base without a report counts as."""

_ASKS_WHERE_IT_IS = re.compile(rb"\$\{?(0|BASH_SOURCE)\b")
_SOLVE = """\
#!/bin/bash
# Runs the steps of the solution in the order of their numbers, and stops at the first that fails.
set -euo pipefail

solution=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for step in "$solution"/steps/*.sh; do
    chmod +x "$step" 2>/dev/null || true
    "$step"
done
"""
_BASE_BESIDE = """\
#!/bin/bash
# The original work. It looks for its files beside itself, so it stays in the folder above.
set -euo pipefail

base=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/base_solve.sh
chmod +x "$base" 2>/dev/null || true
exec "$base"
"""
_TEST = """\
#!/bin/bash
# Runs the original tests, then the checks of every later demand.
export BASE_PATH="$PATH"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin
exec python3 -I -B /tests/run_demands.py
"""


def composing_refusal(bundle: Bundle) -> str | None:
    """Why this bundle cannot be brought into the composed layout, in one line; None if it can."""
    paths = bundle.by_path
    for path in ("instruction.md", "task.toml", "solution/solve.sh", "tests/test.sh"):
        if path not in paths:
            return f"the environment has no {path}"
    if any(path.startswith("steps/") for path in paths):
        return "an environment of several steps cannot be composed yet"
    if {"tests/Dockerfile", "tests/docker-compose.yaml"} & paths.keys():
        return "its tests are part of an image of their own, so no check can be added"
    if not is_composed(bundle):
        for path in (BASE_STEP, BASE_SOLUTION, BASE_TESTS, DRIVER_OF_CHECKS):
            if path in paths:
                return f"{path} is taken by a file of the environment itself"
    if not _has_python(bundle):
        return "its image has no python3, which the added checks need"
    return None


def _has_python(bundle: Bundle) -> bool:
    dockerfile = bundle.by_path.get("environment/Dockerfile")
    if dockerfile is None:
        environment = bundle.config.get("environment", {})
        return isinstance(environment, dict) and "python" in str(environment.get("docker_image"))
    text = dockerfile.data.decode(errors="replace")
    return "python3" in text or re.search(r"(?m)^FROM\s+\S*python", text) is not None


def is_composed(bundle: Bundle) -> bool:
    """Whether the bundle is in the composed layout already."""
    return {BASE_STEP, BASE_TESTS, DRIVER_OF_CHECKS} <= bundle.by_path.keys()


def composed(bundle: Bundle) -> Bundle:
    """The bundle in the composed layout, with the same meaning. Nothing is done twice.

    Raises ValueError when `composing_refusal` has a reason.
    """
    reason = composing_refusal(bundle)
    if reason:
        raise ValueError(reason)
    if is_composed(bundle):
        return bundle
    solve = bundle.by_path["solution/solve.sh"]
    test = bundle.by_path["tests/test.sh"]
    driver = resources("evolution.operators.parts").joinpath("run_demands.py").read_bytes()
    made = [
        _script("solution/solve.sh", _SOLVE),
        SandboxFile(BASE_TESTS, test.data, 0o755, test.link),
        _script("tests/test.sh", _TEST),
        SandboxFile(DRIVER_OF_CHECKS, driver),
    ]
    if solve.link is not None or _ASKS_WHERE_IT_IS.search(solve.data):
        made += [
            SandboxFile(BASE_SOLUTION, solve.data, 0o755, solve.link),
            _script(BASE_STEP, _BASE_BESIDE),
        ]
    else:
        made.append(SandboxFile(BASE_STEP, solve.data, 0o755))
    return bundle.with_files(made)


def _script(path: str, text: str) -> SandboxFile:
    return SandboxFile(path, text.encode(), 0o755)


def step_path(number: int, name: str) -> str:
    """Where the step of a demand lies: preparing below 50, continuing above."""
    return f"solution/steps/{number:02d}-{name.replace('_', '-')}.sh"


def checks_path(name: str) -> str:
    """Where the checks of a demand lie."""
    return f"tests/demands/{name}.py"


def artifacts_of(bundle: Bundle) -> tuple[str, ...]:
    """The declared artifact paths, without trailing slashes."""
    found = []
    for entry in bundle.config.get("artifacts", []):
        source = entry.get("source") if isinstance(entry, dict) else entry
        if isinstance(source, str):
            found.append(source.rstrip("/") or "/")
    return tuple(found)


def covers(artifacts: Iterable[str], path: str) -> bool:
    """Whether one of these artifacts carries the path."""
    return any(path == top or path.startswith(f"{top}/") for top in artifacts)


def configured(
    bundle: Bundle, artifacts: Iterable[str], ratchet: Mapping[str, Any], sequence: Sequence
) -> Bundle:
    """The bundle with more artifacts and new `[metadata.ratchet]` values; the rest untouched."""
    changes: dict[tuple[str, ...], Any] = {}
    declared = list(bundle.config.get("artifacts", []))
    wanted = with_artifacts(declared, artifacts)
    if wanted != declared:
        changes["artifacts",] = wanted
    for key, value in ratchet.items():
        changes["metadata", "ratchet", key] = value
    pairs = tomlkit.array()
    for pair in sequence:
        row = tomlkit.inline_table()
        row.update({"scenario": pair.scenario, "skill": pair.skill})
        pairs.append(row)
    changes["metadata", "ratchet", "sequence"] = pairs.multiline(True)
    return with_config(bundle, changes)


def with_artifacts(declared: list[Any], added: Iterable[str]) -> list[Any]:
    """The declared artifacts with more paths, none of them below another (Harbor reports that)."""
    entries = list(declared)
    for path in added:
        if not covers([e.rstrip("/") for e in entries if isinstance(e, str)], path):
            entries = [e for e in entries if not (isinstance(e, str) and covers([path], e))]
            entries.append(path)
    return entries
