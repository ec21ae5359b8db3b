"""manage.py import_environments"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.plain_text import plain
from evolution.reading import Refusal, find_bundles
from webapp.services import environments, verifications

EXAMPLES = """examples:
  manage.py import_environments seeds/
  manage.py import_environments tasks.tar.gz my-task/ --tag batch-7
"""


class Command(BaseCommand):
    """Import folders, archives and whole trees of environments."""

    help = "Import environments in Harbor layout; each refusal is reported with file and reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("paths", nargs="+", metavar="PATH", help="folder, tree, zip or tar")
        parser.add_argument("--tag", action="append", default=[], help="tag the new lineages")
        parser.add_argument("--verify", action="store_true", help="queue their verification, too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; status 1 when anything was refused."""
        counts = {"imported": 0, "known": 0, "refused": 0}
        for path in options["paths"]:
            if not Path(path).exists():
                self.stderr.write(f"{plain(path)}: no such file or folder; check the path")
                counts["refused"] += 1
                continue
            for found in find_bundles(Path(path)):
                counts[self._take(found, options)] += 1
        self.stdout.write(", ".join(f"{count} {word}" for word, count in counts.items()))
        if counts["refused"]:
            raise CommandError(f"{counts['refused']} refused; see the lines above")
        if not any(counts.values()):
            raise CommandError("no environment found there; a folder with a task.toml is one")

    def _take(self, found: Any, options: dict[str, Any]) -> str:
        if isinstance(found, Refusal):
            self.stderr.write(str(found))
            return "refused"
        environment, is_new = environments.import_seed(
            found.bundle, name=found.name, origin=found.origin, tags=options["tag"]
        )
        for problem in found.warnings:
            self.stderr.write(plain(f"note: {found.name}: {problem.path}: {problem.reason}"))
        if options["verify"]:
            verifications.request_verification(environment)
        self.stdout.write(f"{environment.short_digest}  {environment.name}")
        return "imported" if is_new else "known"
