"""manage.py export"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from webapp.models import DatasetVersion
from webapp.services import exports

EXAMPLES = """examples:
  manage.py export my-dataset --format harbor --out exported/
  manage.py export my-dataset@2 --format harbor --out exported/
"""


class Command(BaseCommand):
    """Write a frozen dataset version to a folder."""

    help = "Export a frozen version; nothing stands under the final name before it is whole."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument(
            "dataset", metavar="DATASET[@N]", help="name or slug; the newest version without @N"
        )
        parser.add_argument("--format", choices=["harbor"], default="harbor")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export."""
        version = _find(options["dataset"])
        target = options["out"] / f"{version.dataset.slug}-v{version.number}"
        if target.exists():
            raise CommandError(f"{target}: exists already; choose another folder or remove it")
        try:
            count = exports.export_folder(version, target)
        except OSError as error:
            raise CommandError(f"{error.filename or target}: {error.strerror}") from None
        self.stdout.write(f"{count} environments in {target}")


def _find(reference: str) -> DatasetVersion:
    """The version that `NAME` or `NAME@N` names. Raises CommandError."""
    name, _, number = reference.partition("@")
    versions = DatasetVersion.objects.filter(Q(dataset__slug=name) | Q(dataset__name=name))
    if number:
        versions = versions.filter(number=int(number) if number.isdecimal() else 0)
    version = versions.order_by("-number").first()
    if version is None:
        raise CommandError(f"no frozen version {reference!r}; see /datasets/")
    return version
