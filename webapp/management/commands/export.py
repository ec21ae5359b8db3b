"""manage.py export"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.models import DatasetVersion
from webapp.services import exports

EXAMPLES = """examples:
  manage.py export my-dataset --format harbor --out exported/
  manage.py export my-dataset --version 2 --format harbor --out exported/
"""


class Command(BaseCommand):
    """Write a frozen dataset version to a folder."""

    help = "Export a frozen version; nothing stands under the final name before it is whole."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("dataset", help="name or slug")
        parser.add_argument("--version", type=int, dest="number", help="the newest when not given")
        parser.add_argument("--format", choices=["harbor"], default="harbor")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export."""
        versions = DatasetVersion.objects.filter(
            dataset__slug=options["dataset"]
        ) | DatasetVersion.objects.filter(dataset__name=options["dataset"])
        if options["number"]:
            versions = versions.filter(number=options["number"])
        version = versions.order_by("-number").first()
        if version is None:
            raise CommandError(f"no frozen version of {options['dataset']!r}; see /datasets/")
        target = options["out"] / f"{version.dataset.slug}-v{version.number}"
        if target.exists():
            raise CommandError(f"{target}: exists already; choose another folder or remove it")
        try:
            count = exports.export_folder(version, target)
        except OSError as error:
            raise CommandError(f"{error.filename or target}: {error.strerror}") from None
        self.stdout.write(f"{count} environments in {target}")
