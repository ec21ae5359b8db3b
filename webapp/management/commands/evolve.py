"""manage.py evolve"""

from __future__ import annotations

import json
import os
import signal
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.directions import Direction, Effort
from evolution.llm.budget import Limits
from evolution.llm.endpoints import ModelConfigError
from webapp import dispatch, model_forecast, wiring
from webapp.adapters import inline
from webapp.lifecycle import PauseReason, RunStatus
from webapp.management.errands import errand_all
from webapp.management.hardening import harden_all
from webapp.management.reporting import (
    ProgressLine,
    add_budget_options,
    find_environments,
    format_table,
    given_budget,
    refuse_unheeded,
)
from webapp.models import ErrandKind, EvolutionRun, Lineage
from webapp.selectors.summary import summarize_run
from webapp.services import budgets, runs
from webapp.services.errors import ServiceError

EXAMPLES = """examples:
  manage.py evolve                                   every lineage, three generations
  manage.py evolve --seeds nginx-log-forensics 12 --generations 5 --children 2
  manage.py evolve --direction length --queue        on the workers; returns at once
  manage.py evolve --author llm --budget-usd 20      by the models of RATCHET_MODELS
  manage.py evolve --resume 7 --budget-usd 40        a run that rests goes on, with more to spend
  manage.py evolve --harden 12                       a child whose tests refuse the known cheats
  manage.py evolve --solve 12 --budget-usd 2         a child with the solution that it lacks
  manage.py evolve --replay 7                        again from its stored answers, without a model
"""
_BUDGET = ("budget_usd", "budget_tokens", "budget_seconds")
_OF_A_RUN = (
    *("seeds", "seed", "generations", "children", "direction", "effort", "author"),
    *_BUDGET,
    *("step_usd", "step_tokens", "step_seconds", "queue"),
)
_HEEDED = {"resume": (*_BUDGET, "queue"), "replay": ("queue",), "harden": (), "solve": _BUDGET}
"""What each other way to use the command heeds of a run's options."""


class Command(BaseCommand):
    """Start an evolution run, here or on the workers."""

    help = "Evolve environments: propose, review, build, verify, repair, fall back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("--seeds", nargs="+", metavar="ID", help="id, digest or name")
        parser.add_argument("--seed", type=int, default=0, help="the run's random seed")
        parser.add_argument("--generations", type=int, default=3)
        parser.add_argument("--children", type=int, default=2, help="per lineage and generation")
        parser.add_argument("--direction", action="append", choices=[d.value for d in Direction])
        parser.add_argument("--effort", choices=[e.value for e in Effort], default="low")
        parser.add_argument("--author", choices=runs.AUTHORS, default=runs.PROCEDURAL)
        add_budget_options(parser, "of the run at work")
        each = "what each step may take for itself"
        parser.add_argument("--step-usd", type=float, metavar="X", help=each)
        parser.add_argument("--step-tokens", type=int, metavar="N", help=each)
        parser.add_argument("--step-seconds", type=float, metavar="S", help=each)
        parser.add_argument("--queue", action="store_true", help="let the workers do it")
        other = parser.add_mutually_exclusive_group()
        other.add_argument(
            "--resume", type=int, metavar="RUN", help="go on with a paused or killed run"
        )
        other.add_argument(
            "--replay", type=int, metavar="RUN", help="repeat a run of models from its answers"
        )
        other.add_argument(
            "--harden", nargs="+", metavar="ID", help="no run: harden the verifiers of these"
        )
        other.add_argument(
            "--solve", nargs="+", metavar="ID", help="no run: have reference solutions written"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
        self._defaults = {name: parser.get_default(name) for name in _OF_A_RUN}

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; status 0 only when the run completed (or was queued, with --queue)."""
        self._refuse_unheeded(options)
        if options["solve"]:
            errand_all(
                options["solve"],
                ErrandKind.SOLVE,
                given_budget(options),
                self.stdout,
                is_json=options["json"],
            )
            return
        if options["harden"]:
            harden_all(options["harden"], self.stdout, is_json=options["json"])
            return
        try:
            run = self._start(options)
        except (ServiceError, ModelConfigError) as error:
            raise CommandError(str(error)) from None
        if options["queue"]:
            self.stdout.write(f"run {run.pk} is queued; watch it at /runs/{run.pk}/")
            return
        progress = ProgressLine(self.stderr)
        # Whoever ends us by SIGTERM wants what Ctrl-C does: the run left paused, not half running.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            inline.carry_out(
                run,
                wiring.runner,
                wiring.author_for,
                worker=wiring.worker_name(),
                threads=os.cpu_count() or 2,
                tick=progress.show,
            )
        except KeyboardInterrupt:
            runs.pause_run(run, None)
            raise CommandError(f"paused; go on with: manage.py evolve --resume {run.pk}") from None
        finally:
            signal.signal(signal.SIGTERM, before)
            progress.end()
        self._report(run, is_json=options["json"])

    def _refuse_unheeded(self, options: dict[str, Any]) -> None:
        """Raises CommandError for an option of runs that what was chosen does nothing with."""
        for way, heeded in _HEEDED.items():
            if options[way] is not None:
                unheeded = {k: v for k, v in self._defaults.items() if k not in heeded}
                refuse_unheeded(options, unheeded, f"--{way}")

    def _start(self, options: dict[str, Any]) -> EvolutionRun:
        if options["resume"] is not None:
            return self._resume(options)
        if options["replay"] is not None:
            return self._replay(options)
        lineages = Lineage.objects.order_by("pk")
        if options["seeds"]:
            wanted = find_environments(options["seeds"]).values("lineage")
            lineages = lineages.filter(pk__in=wanted)
        arguments: dict[str, Any] = {
            "lineages": list(lineages),
            "seed": options["seed"],
            "generations": options["generations"],
            "children": options["children"],
            "directions": [Direction(value) for value in options["direction"] or []],
            "effort": Effort(options["effort"]),
            "author": options["author"],
            "budget": given_budget(options),
            "step_budget": Limits(
                options["step_usd"], options["step_tokens"], options["step_seconds"]
            ),
        }
        if options["author"] == runs.LLM:
            self._forecast(arguments)
        return _create(options, arguments)

    def _resume(self, options: dict[str, Any]) -> EvolutionRun:
        """Go on with a run; what is given of a budget takes the place of what it had."""
        run = _run(options["resume"])
        given, before = given_budget(options), budgets.budget_of(run)
        budget = replace(before, **{k: v for k, v in asdict(given).items() if v is not None})
        if run.status == RunStatus.RUNNING:  # whoever worked on it was killed, or works
            if not given.is_open:
                raise CommandError(f"run {run.pk} is running: pause it before its budget changes")
            return run
        with _silence(options):
            runs.resume_run(run, None, None if given.is_open else budget)
        return run

    def _replay(self, options: dict[str, Any]) -> EvolutionRun:
        """A run like another one, whose answers take the place of models."""
        run = _run(options["replay"])
        run = run.replay_of or run  # a replay has no answers of its own
        if run.author != runs.LLM:
            raise CommandError(f"run {run.pk} asked no model: the same seed repeats it")
        arguments = {
            "name": f"{run.name}, replayed"[: runs.NAME_CAP],
            "lineages": list(run.lineages.order_by("pk")),
            "seed": run.seed,
            "generations": run.generations,
            "children": run.children,
            "directions": [Direction(value) for value in run.directions],
            "effort": Effort(run.effort),
            "author": runs.LLM,
            "replay_of": run,
        }
        return _create(options, arguments)

    def _forecast(self, arguments: dict[str, Any]) -> None:
        """Say on stderr what the run will take; raises ModelConfigError when it cannot start."""
        budget = arguments["budget"]
        budgets.check_budget(budget)
        steps = len(arguments["lineages"]) * arguments["generations"] * arguments["children"]
        found = model_forecast.forecast_run(steps, budget, arguments["step_budget"])
        for line in found.lines(budget):
            self.stderr.write(line)

    def _report(self, run: EvolutionRun, *, is_json: bool) -> None:
        summary = summarize_run(run).as_json()
        if is_json:
            self.stdout.write(json.dumps(summary))
        else:
            self.stdout.write(format_table(["figure", "value"], list(summary.items())))
        run.refresh_from_db()
        if run.status != RunStatus.COMPLETED:
            raise CommandError(
                f"run {run.pk} is {run.status}, not completed: {run.error}{_way(run)}"
            )


def _run(pk: int) -> EvolutionRun:
    run = EvolutionRun.objects.filter(pk=pk).first()
    if run is None:
        raise CommandError(f"no run {pk}; see /runs/")
    return run


def _silence(options: dict[str, Any]) -> AbstractContextManager[None]:
    """Without --queue this process does the work itself, and rings for nobody."""
    return nullcontext() if options["queue"] else dispatch.muted()


def _create(options: dict[str, Any], arguments: dict[str, Any]) -> EvolutionRun:
    with _silence(options):
        return runs.create_run(**arguments)


def _way(run: EvolutionRun) -> str:
    """How a run that rests by itself goes on."""
    if run.pause_reason == PauseReason.BUDGET:
        return f"; go on with: manage.py evolve --resume {run.pk} --budget-… (a larger one)"
    return f"; go on with: manage.py evolve --resume {run.pk}" if run.pause_reason else ""
