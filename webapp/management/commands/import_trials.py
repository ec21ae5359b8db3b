"""manage.py import_trials"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.harbor_jobs import HarborRefusal, HarborTrial, read_jobs
from evolution.plain_text import plain
from evolution.trials_csv import TrialRefusal, read_trials
from webapp.services import attempts, measurements

EXAMPLES = """examples:
  manage.py import_trials terminal_bench_trials.csv
  manage.py import_trials outcomes.jsonl
  manage.py import_trials jobs/2026-11-30__12-00-00      a job of Harbor, a trial, or many jobs
"""


class Command(BaseCommand):
    """Import the outcomes of solvers that were measured elsewhere."""

    help = "Import trials (CSV, JSONL, Harbor's jobs), shown at the environments that they name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("path", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; status 1 when any line was refused."""
        path: Path = options["path"]
        if path.is_dir():
            self._import_jobs(path)
            return
        if not path.is_file():
            raise CommandError(f"{path}: no such file; check the path")
        refused = 0
        accepted = []
        for row in read_trials(path):
            if isinstance(row, TrialRefusal):
                refused += 1
                self.stderr.write(f"{path}:{row.line}: {row.reason}")
            else:
                accepted.append(row)
        self._tell(measurements.import_trials(accepted, source=path.name), refused)
        if refused:
            raise CommandError(f"{refused} lines refused; see above")

    def _tell(self, count: measurements.ImportCount, refused: int) -> None:
        self.stdout.write(
            f"{count.stored} stored, {count.known} known before, {refused} refused; "
            f"{count.matched} belong to environments that are here"
        )

    def _import_jobs(self, path: Path) -> None:
        """Harbor's trials below a folder, each with its trajectory and cast."""
        refused = 0

        def accepted() -> Iterator[HarborTrial]:
            nonlocal refused
            for trial in read_jobs(path):
                if isinstance(trial, HarborRefusal):
                    refused += 1
                    self.stderr.write(plain(f"{trial.folder}: {trial.reason}"))
                    continue
                for note in trial.notes:
                    self.stderr.write(plain(f"{trial.source}: {note}"))
                yield trial

        count = attempts.import_jobs(accepted())
        self._tell(count, refused)
        if refused:
            raise CommandError(f"{refused} trials refused; see above")
        if not count.stored + count.known:
            raise CommandError(f"{path}: no trial of Harbor in there (result.json, lock.json, …)")
