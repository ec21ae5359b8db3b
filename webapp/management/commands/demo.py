"""manage.py demo"""

from __future__ import annotations

import json
import os
import secrets
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from evolution.reading import FoundBundle, find_bundles
from webapp.embedded import broker
from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.supervisor import Supervisor, listen, web_part, worker_parts
from webapp.keys import key_variables
from webapp.lifecycle import RunStatus
from webapp.management.reporting import ProgressLine, format_table
from webapp.models import EvolutionRun, Lineage, Role, User
from webapp.selectors.summary import RunSummary, summarize_run
from webapp.services import imports, runs

EXAMPLES = """examples:
  manage.py demo                       a real run on the bundled seeds, then the pages
  manage.py demo --no-serve --json     the figures only, for a machine to read
"""

ACCOUNT = "demo"
ORIGIN = "bundled with Ratchet"
HOST = "127.0.0.1"


class Command(BaseCommand):
    """The main job, end to end, on this machine."""

    help = "Import the bundled seeds, evolve them on real workers, print a summary, then serve."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("--no-serve", action="store_true", help="end after the summary")
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
        parser.add_argument("--seed", type=int, default=1, help="the run's random seed")
        parser.add_argument("--generations", type=int, default=4)
        parser.add_argument("--children", type=int, default=1, help="per lineage and generation")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; status 0 only when the run completed."""
        is_serving = not options["no_serve"]
        address = f"http://{HOST}:{options['port']}/"
        parts = worker_parts(os.cpu_count() or 2, key_variables())
        try:
            if is_serving:
                parts.append(web_part(listen(HOST, options["port"]), key_variables()))
        except EmbeddedUnavailable as error:
            raise CommandError(str(error)) from None
        call_command("migrate", verbosity=0, interactive=False)
        broker.purge(settings.BROKER_FOLDER)  # the rows know what is to be done
        lineages = import_bundled()
        welcome = f"{address}  sign in as {ACCOUNT}, password {_make_account()}"
        log = Path(settings.RATCHET_HOME) / "demo.log"
        with (
            log.open("a", buffering=1) as lines,
            Supervisor(parts, write=lambda line: lines.write(f"{line}\n")) as supervisor,
        ):
            if is_serving:
                self.stderr.write(f"Watch it at {welcome}")
            run = _start_run(lineages, options)
            self._wait(run, supervisor, log)
            self._report(run, is_json=options["json"])
            if is_serving:
                self.stderr.write(f"Serving {welcome}\nCtrl-C ends it.")
                supervisor.wait()

    def _wait(self, run: EvolutionRun, supervisor: Supervisor, log: Path) -> None:
        progress = ProgressLine(self.stderr)
        try:
            while run.status in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PAUSED):
                if supervisor.failure:
                    raise CommandError(f"{supervisor.failure}; see {log}")
                time.sleep(0.5)
                run.refresh_from_db()
                progress.show(run)
        except KeyboardInterrupt:
            raise CommandError("interrupted; the same command goes on where it stopped") from None
        finally:
            progress.end()
        if run.status != RunStatus.COMPLETED:
            raise CommandError(f"the run is {run.status}: {run.error or 'see its page'}")

    def _report(self, run: EvolutionRun, *, is_json: bool) -> None:
        summary = summarize_run(run)
        out = self.stderr if is_json else self.stdout
        out.write(_table(summary))
        if is_json:
            self.stdout.write(json.dumps(summary.as_json()))


def import_bundled() -> list[Lineage]:
    """Import the bundled seeds, on record like any import. CommandError where one is refused."""
    folder = Path(settings.BASE_DIR) / "seeds"
    found = list(find_bundles(folder, has_git_modes=True))  # also from an image or an archive
    batch = imports.open_import([ORIGIN], tags=["bundled"])
    lineages = []
    for position, item in enumerate(found):
        if not isinstance(item, FoundBundle):
            raise CommandError(f"bundled seed {item.path}: {item.reason}")
        entry = imports.take_found(batch, position, replace(item, origin=ORIGIN))
        if entry.environment is not None:
            lineages.append(entry.environment.lineage)
    imports.close_import(batch)
    if not lineages:
        raise CommandError(f"no seeds in {folder}; is the clone complete?")
    return lineages


def _start_run(lineages: list[Lineage], options: dict[str, Any]) -> EvolutionRun:
    """A new run, or the one of the same configuration that an earlier demo left unfinished."""
    wanted = {key: options[key] for key in ("seed", "generations", "children")}
    name = f"Demo, seed {options['seed']}"
    open_run = EvolutionRun.objects.filter(
        name=name, status__in=[RunStatus.RUNNING, RunStatus.PAUSED], **wanted
    ).first()
    if open_run is None:
        return runs.create_run(lineages=lineages, name=name, **wanted)
    if open_run.status == RunStatus.PAUSED:
        runs.resume_run(open_run, None)
    return open_run


def _make_account() -> str:
    """The demo account, with a new password each time; it may do everything but administer."""
    password = secrets.token_urlsafe(9)
    user, _ = User.objects.get_or_create(username=ACCOUNT, defaults={"role": Role.OPERATOR})
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def _table(summary: RunSummary) -> str:
    generations = format_table(
        ["generation", "mean live demands", "mean D_T (nats)"],
        [
            [number, demands, d_t]
            for number, (demands, d_t) in enumerate(
                zip(summary.mean_demands, summary.mean_d_t, strict=True)
            )
        ],
    )
    figures = format_table(
        ["figure", "value"],
        [
            ["seeds", str(summary.seeds)],
            ["environments built", str(summary.built)],
            ["valid", str(summary.valid)],
            ["yield (accepted per step)", f"{summary.yield_:.0%}"],
            ["live demands that bite", f"{summary.demands_bite:.0%}"],
            ["sandboxes", str(summary.sandboxes)],
            ["seconds", f"{summary.seconds:.0f}"],
            ["measured difficulty", "not measured (no solver connected)"],
        ],
    )
    return f"\n{figures}\n\n{generations}\n"
