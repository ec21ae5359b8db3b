"""manage.py import_environments"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.reading import Found, Refusal, find_bundles
from webapp.management.reporting import find_import, format_findings, format_table
from webapp.models import ImportEntry
from webapp.selectors.imports import funnel_of, verdicts_of
from webapp.services import imports, verifications

EXAMPLES = """examples:
  manage.py import_environments seeds/
  manage.py import_environments tasks.tar.gz my-task/ --tag batch-7
  manage.py import_environments --report 3     how far an earlier import is by now
"""


class Command(BaseCommand):
    """Import folders, archives and whole trees of environments."""

    help = "Import environments in Harbor layout; each refusal is reported with file and reason."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("paths", nargs="*", metavar="PATH", help="folder, tree, zip or tar")
        parser.add_argument("--tag", action="append", default=[], help="tag the new lineages")
        parser.add_argument("--verify", action="store_true", help="queue their verification, too")
        parser.add_argument("--report", type=int, metavar="N", help="only report on import N")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, then report; status 1 when anything was refused."""
        paths, number = options["paths"], options["report"]
        if bool(paths) == (number is not None):
            raise CommandError("name what is to be imported, or say --report N")
        if number is not None:
            self._report(number)
            return
        self._import(paths, options)

    def _import(self, paths: list[str], options: dict[str, Any]) -> None:
        batch = imports.open_import(paths, tags=options["tag"])
        counts = {"imported": 0, "known": 0, "refused": 0}
        for position, found in enumerate(_find(paths)):
            entry = imports.take_found(batch, position, found)
            counts[entry.outcome] += 1
            self._tell(entry, found, is_queued=options["verify"])
        imports.close_import(batch)
        self.stdout.write(", ".join(f"{count} {word}" for word, count in counts.items()))
        self._report(batch.pk)
        if counts["refused"]:
            raise CommandError(f"{counts['refused']} refused; see the lines above")
        if not any(counts.values()):
            raise CommandError("no environment found there; a folder with a task.toml is one")

    def _tell(self, entry: ImportEntry, found: Found, *, is_queued: bool) -> None:
        """One line on what was found, and its verification if asked for."""
        environment = entry.environment
        if environment is None:
            self.stderr.write(str(found))
            return
        for note in entry.notes:
            self.stderr.write(f"note: {environment.name}: {note}")
        if is_queued:
            verifications.request_verification(environment)
        self.stdout.write(f"{environment.short_digest}  {environment.name}")

    def _report(self, number: int) -> None:
        """The funnel, and the findings so far, the gravest first."""
        batch = find_import(number)
        rows = [[stage.label, stage.count, stage.lost] for stage in funnel_of(batch)]
        self.stdout.write("\n" + format_table([f"import {batch.pk}", "n", ""], rows))
        if said := format_findings(verdicts_of(batch)):
            self.stdout.write("\n" + said)


def _find(paths: list[str]) -> Iterator[Found]:
    """What is at these paths; a path that is not there is a refusal, too."""
    for path in paths:
        if Path(path).exists():
            yield from find_bundles(Path(path))
        else:
            yield Refusal(path, "", "no such file or folder; check the path")
