"""manage.py import_trials"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.trials_csv import TrialRefusal, read_trials
from webapp.services import measurements

EXAMPLES = """examples:
  manage.py import_trials terminal_bench_trials.csv
  manage.py import_trials outcomes.jsonl
"""


class Command(BaseCommand):
    """Import the outcomes of solvers that were measured elsewhere."""

    help = "Import trials (CSV or JSONL); they are shown at the environments whose name they carry."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("path", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; status 1 when any line was refused."""
        path: Path = options["path"]
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
        count = measurements.import_trials(accepted, source=path.name)
        self.stdout.write(
            f"{count.stored} stored, {count.known} known before, {refused} refused; "
            f"{count.matched} belong to environments that are here"
        )
        if refused:
            raise CommandError(f"{refused} lines refused; see above")
