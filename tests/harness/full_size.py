"""The acceptance run at full size, outside of CI: python -m tests.harness.full_size --help

Ten seeds, five generations, over real HTTP, with real sandboxes, in a home of its own. Says what
came of every model: children, repairs, calls, tokens, seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness.lineages import KEY, endpoint
from tests.harness.server.faults import Fault, FaultPlan
from tests.harness.server.http import ModelServer
from tests.harness.server.models import all_models

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("competent", "sloppy", "hopeless", "hostile")


def main() -> int:
    """Status 0 when every run came to its end."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness.full_size", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many of the bundled seeds")
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=["competent"], choices=MODELS)
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls to be spoiled")
    options = parser.parse_args()
    kinds = tuple(kind for kind in Fault if kind is not Fault.WRONG_MODEL)
    ended = [
        one_run(name, options.seeds, options.generations, FaultPlan(options.faults, kinds))
        for name in options.models
    ]
    return 0 if all(ended) else 1


def one_run(model: str, seeds: int, generations: int, faults: FaultPlan) -> bool:
    """A run of one model in a fresh home; whether it completed."""
    with (
        tempfile.TemporaryDirectory(prefix="ratchet-full-") as home,
        ModelServer(all_models(), faults=faults) as server,
    ):
        environment = {
            **os.environ,
            "RATCHET_HOME": home,
            "RATCHET_MODELS": endpoint(server.url, model, "timeout=30 attempts=8"),
            "HARNESS_KEY": KEY,
        }
        names = sorted(p.parent.name for p in (ROOT / "seeds").glob("*/task.toml"))[:seeds]
        manage(environment, "migrate", "-v", "0")
        manage(environment, "import_environments", *(f"seeds/{name}" for name in names))
        begun = time.monotonic()
        done = manage(
            environment,
            *("evolve", "--author", "llm", "--children", "1", "--budget-tokens", "100000000"),
            *("--generations", str(generations), "--json"),
        )
        seconds = time.monotonic() - begun
        lines = done.stdout.strip().split("\n")
        spoiled = sum(call.fault is not None for call in server.served)
        say(f"{model}: {len(names)} seeds, {generations} generations, {seconds:.0f} s")
        say(f"  {len(server.served)} calls, {spoiled} spoiled, {server.told()} tokens told")
        say(
            f"  {lines[-1]}"
            if done.returncode == 0
            else f"  FAILED\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
        return done.returncode == 0 and isinstance(json.loads(lines[-1]), dict)


def manage(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """A management command, with everything that it says."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def say(line: str) -> None:
    """A line for whoever waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
