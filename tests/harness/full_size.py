"""The acceptance runs at full size, outside of CI: python -m tests.harness.full_size --help

Runs of every model on real workers, over real HTTP, with real sandboxes, in a home of their own; or
many calls to a server that spoils some. Each prints what came of it, and where that is not what the
model's script implies.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.harness.calls import Calls
from tests.harness.server.faults import BRISK, FaultPlan
from tests.harness.server.http import ModelServer
from tests.harness.server.models import all_models

if TYPE_CHECKING:
    from webapp.models import EvolutionRun

ROOT = Path(__file__).resolve().parents[2]
SEEDS = sorted(path.parent.name for path in (ROOT / "seeds").glob("*/task.toml"))
MODELS = ("competent", "sloppy", "hopeless", "hostile")
CALLS_PER_STEP = 8
"""Fewer than a step takes: kills are drawn among the calls that will surely come."""
LONGEST_DELAY = 15.0
"""Seconds from a call to a kill: also while gates look at what came of it."""
PATIENCE = 4 * 3600.0


def main() -> int:
    """Status 0 when everything came as the scripts imply."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness.full_size", description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many bundled seeds")
    parser.add_argument("--names", nargs="+", choices=SEEDS, help="these seeds instead")
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=["competent"], choices=MODELS)
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls to be spoiled")
    parser.add_argument("--kills", type=int, default=0, help="how often all workers are killed")
    parser.add_argument("--calls", type=int, default=0, help="so many calls instead of runs")
    parser.add_argument("--seed", type=int, default=5, help="of runs and kills")
    parser.add_argument("--children", type=Path, metavar="FILE", help="where digests are written")
    parser.add_argument("--same-as", type=Path, metavar="FILE", help="digests that have to come")
    options = parser.parse_args()
    if options.calls:
        said = Calls(options.calls, options.faults or 0.2)
        say(said.made())
        return 0
    names = options.names or SEEDS[: options.seeds]
    with tempfile.TemporaryDirectory(prefix="ratchet-full-") as home:
        set_up(Path(home), names)
        given: dict[str, list[str]] = {}
        ended = [one_run(model, Path(home), options, given) for model in options.models]
    if options.children:
        options.children.write_text(json.dumps(given))
    return 0 if all(ended) else 1


def set_up(home: Path, names: list[str]) -> None:
    """Django on a fresh home with these seeds in it."""
    os.environ.update(
        DJANGO_SETTINGS_MODULE="webapp.settings",
        RATCHET_HOME=str(home),
        EMBEDDED_POSTGRES_IS_DURABLE="off",
    )
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    call_command("import_environments", *(str(ROOT / "seeds" / name) for name in names))


def one_run(
    model: str, home: Path, options: argparse.Namespace, children: dict[str, list[str]]
) -> bool:
    """A run of all lineages, whose children are added; whether it came as implied."""
    from tests.harness.campaign import Killer, digests, finished, workers_on
    from webapp.lifecycle import RunStatus

    faults = FaultPlan(options.faults, BRISK)
    log = home / f"{model}.log"
    scripts = all_models()
    with (
        ModelServer(scripts, faults=faults) as server,
        workers_on(server, model, log, os.environ, "attempts=8 timeout=60") as supervisor,
    ):
        begun = time.monotonic()
        run = create(options)
        server.at_call = killer = Killer(supervisor, moments(run, options))
        run = finished(run, RunStatus.COMPLETED, PATIENCE, partial(progress, [0]))
        say(f"{model}: {run}, {time.monotonic() - begun:.0f} s")
        differences = checked(run, server, scripts[model], options)
        if options.kills:
            say(f"  {killer.deaths} kills of all workers hit {killer.hits} pieces of work")
            if killer.deaths != options.kills:
                differences.append(f"{killer.deaths} kills")
        given = digests(run)
        count = len(server.served)
        again = finished(create(options, run), RunStatus.COMPLETED, PATIENCE)
        if digests(again) != given or len(server.served) != count:
            differences.append("the replay gives something else, or asks the model")
    if options.same_as:
        other = json.loads(options.same_as.read_text())[model]
        if given != other:
            here = [digest[:8] for digest in given if digest not in other]
            there = [digest[:8] for digest in other if digest not in given]
            differences.append(f"only here {here}, only in {options.same_as} {there}")
        else:
            say(f"  the children of {options.same_as}")
    children[model] = given
    say(f"  {len(given)} children, the same again from what is on record")
    for line in differences:
        say(f"  NOT AS IMPLIED: {line}")
    return not differences


def create(options: argparse.Namespace, replay_of: EvolutionRun | None = None) -> EvolutionRun:
    """A run over all lineages."""
    from evolution.llm.budget import Limits
    from webapp.models import Lineage
    from webapp.services import runs

    return runs.create_run(
        lineages=list(Lineage.objects.order_by("pk")),
        seed=options.seed,
        generations=options.generations,
        children=1,
        author=runs.LLM,
        budget=Limits() if replay_of else Limits(tokens=1_000_000_000),
        replay_of=replay_of,
    )


def moments(run: EvolutionRun, options: argparse.Namespace) -> Mapping[int, float]:
    """When all workers are to be killed: after which calls, and how long after."""
    drawn = random.Random(options.seed)
    last = run.lineages.count() * options.generations * CALLS_PER_STEP
    numbers = drawn.sample(range(2, last), options.kills)
    return {number: drawn.choice((0.0, drawn.uniform(0, LONGEST_DELAY))) for number in numbers}


def checked(
    run: EvolutionRun, server: ModelServer, script: Any, options: argparse.Namespace
) -> list[str]:
    """Print the figures; where they are not what is implied."""
    from tests.harness.campaign import known, lost_answers
    from tests.harness.expected import findings

    if not options.faults and not options.kills:
        found = findings(run, server, script)
        say(f"  {json.dumps(found.figures, default=str)}")
        return found.differences
    spoiled = sum(call.fault is not None for call in server.served)
    say(f"  {len(server.served)} calls, {spoiled} spoiled; {known(run)} tokens known")
    lost = lost_answers(run, server)
    say(f"  {lost} answers were lost with their workers")
    return [] if 0 <= lost <= 2 * options.kills else [f"{lost} answers lost"]


def progress(last: list[float], run: EvolutionRun) -> None:
    """A line now and then."""
    if time.monotonic() - last[0] < 60:
        return
    last[0] = time.monotonic()
    ended = run.steps.exclude(finished_at=None).count()
    say(f"  … {ended} steps ended, {run.steps.exclude(child=None).count()} with a child")


def say(line: str) -> None:
    """A line for whoever waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
