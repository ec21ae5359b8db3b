"""manage.py verify"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from evolution.gates.protocol import GATES, Depth
from evolution.plain_text import plain
from webapp.management.matrix_text import format_matrices, format_matrix
from webapp.management.reporting import add_sandbox_option, find_environments, find_import
from webapp.management.verifying import verify_here
from webapp.models import Environment, Verification
from webapp.models.trial import ALL_GATES
from webapp.selectors.imports import environments_of
from webapp.selectors.matrix import matrix_as_json

EXAMPLES = """examples:
  manage.py verify nginx-log-forensics      by id, digest or name
  manage.py verify --all --sandbox docker   on their real images
  manage.py verify --all --json
  manage.py verify --all --full             before a dataset is frozen: all gates, 20 oracle runs
  manage.py verify 12 --full --gate mutants   one gate asked anew, the others as answered before
  manage.py verify --import 3               the seeds of an import
  manage.py verify --all --fresh            nothing that was answered before counts
"""


class Command(BaseCommand):
    """Run the gates here and print the matrix."""

    help = "Verify environments in fresh sandboxes; status 0 only when every one is valid."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("environments", nargs="*", metavar="ID")
        parser.add_argument("--all", action="store_true", help="every environment")
        parser.add_argument("--import", type=int, dest="imported", metavar="N", help="import N's")
        parser.add_argument("--full", action="store_true", help="the expensive gates, too")
        anew = parser.add_mutually_exclusive_group()
        anew.add_argument("--gate", choices=GATES, metavar="NAME", help="ask this gate anew")
        anew.add_argument("--fresh", action="store_true", help="ask all gates anew")
        add_sandbox_option(parser)
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify and print."""
        wanted = _wanted(options)
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            depth = Depth.FULL if options["full"] else Depth.QUICK
            renew = ALL_GATES if options["fresh"] else options["gate"] or ""
            work = {e: pool.submit(_verify, e, options["sandbox"], depth, renew) for e in wanted}
        if not work:
            raise CommandError("nothing to verify; import environments first")
        # One that ended in an error hides nothing of the others.
        broken = {e: error for e, future in work.items() if (error := future.exception())}
        rows = [future.result() for e, future in work.items() if e not in broken]
        self._print(rows, broken, is_json=options["json"])
        count = len(broken) + sum(row.verdict != "passed" for row in rows)
        if count:
            raise CommandError(f"{count} of {len(work)} are not valid; see the matrix")

    def _print(
        self,
        rows: list[Verification],
        broken: dict[Environment, BaseException],
        *,
        is_json: bool,
    ) -> None:
        errors = {e: plain(f"{type(error).__name__}: {error}") for e, error in broken.items()}
        keys = [row.pk for row in rows]
        done = list(
            Verification.objects.filter(pk__in=keys)
            .select_related("environment")
            .prefetch_related("gates")
            .order_by("environment_id")
        )
        if is_json:
            said = [matrix_as_json(row) for row in done]
            said += [{**_identity(e), "verdict": "", "error": errors[e]} for e in broken]
            self.stdout.write(json.dumps({"verifications": said}))
            return
        if done:
            self.stdout.write(format_matrix(done[0]) if len(done) == 1 else format_matrices(done))
        for environment, error in errors.items():
            self.stdout.write(f"environment {environment.pk}, {environment.name}: {error}")


def _wanted(options: dict[str, Any]) -> list[Environment]:
    """The environments that were asked for, in one of three ways. Raises CommandError."""
    names, number = options["environments"], options["imported"]
    if sum((bool(names), options["all"], number is not None)) != 1:
        raise CommandError("name environments, or say --all or --import N")
    if names:
        return list(find_environments(names))
    if number is None:
        return list(Environment.objects.order_by("pk"))
    return list(environments_of(find_import(number)).order_by("pk"))


def _verify(environment: Environment, sandbox: str, depth: Depth, renew: str) -> Verification:
    """In a thread of its own, whose connection ends with it."""
    try:
        return verify_here(environment, depth, renew=renew, sandbox=sandbox)
    finally:
        connection.close()


def _identity(environment: Environment) -> dict[str, Any]:
    return {
        "environment": environment.pk,
        "name": environment.name,
        "digest": environment.digest,
    }
