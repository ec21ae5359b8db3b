"""manage.py evolve"""

from __future__ import annotations

import json
import os
import signal
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.directions import Direction, Effort
from webapp import dispatch, wiring
from webapp.adapters import inline
from webapp.lifecycle import RunStatus
from webapp.management.reporting import ProgressLine, find_environments, format_table
from webapp.models import EvolutionRun, Lineage
from webapp.selectors.summary import summarize_run
from webapp.services import runs
from webapp.services.errors import ServiceError

EXAMPLES = """examples:
  manage.py evolve                                   every lineage, three generations
  manage.py evolve --seeds nginx-log-forensics 12 --generations 5 --children 2
  manage.py evolve --direction length --queue        on the workers; returns at once
"""


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
        parser.add_argument("--author", choices=["procedural"], default="procedural")
        parser.add_argument("--queue", action="store_true", help="let the workers do it")
        parser.add_argument(
            "--resume", type=int, metavar="RUN", help="go on with a paused or killed run"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; status 0 only when the run completed (or was queued, with --queue)."""
        try:
            run = self._start(options)
        except ServiceError as error:
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

    def _start(self, options: dict[str, Any]) -> EvolutionRun:
        if options["resume"]:
            run = EvolutionRun.objects.filter(pk=options["resume"]).first()
            if run is None:
                raise CommandError(f"no run {options['resume']}; see /runs/")
            if (
                run.status != RunStatus.RUNNING
            ):  # running: whoever worked on it was killed, or works
                with dispatch.muted():
                    runs.resume_run(run, None)
            return run
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
        }
        if options["queue"]:
            return runs.create_run(**arguments)
        with dispatch.muted():
            return runs.create_run(**arguments)

    def _report(self, run: EvolutionRun, *, is_json: bool) -> None:
        summary = summarize_run(run).as_json()
        if is_json:
            self.stdout.write(json.dumps(summary))
        else:
            self.stdout.write(format_table(["figure", "value"], list(summary.items())))
        run.refresh_from_db()
        if run.status != RunStatus.COMPLETED:
            raise CommandError(f"run {run.pk} is {run.status}, not completed: {run.error}")
