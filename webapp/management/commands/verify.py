"""manage.py verify"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from webapp import dispatch, wiring
from webapp.adapters import work
from webapp.lifecycle import TrialStatus
from webapp.management.reporting import find_environments, format_table
from webapp.models import Environment, Verification
from webapp.services import verifications

EXAMPLES = """examples:
  manage.py verify nginx-log-forensics      by id, digest or name
  manage.py verify --all --json
"""

MARKS = {"passed": "ok", "failed": "FAIL", "inconclusive": "?", "not_applicable": "–"}


class Command(BaseCommand):
    """Run the gates here and print the matrix."""

    help = "Verify environments in fresh sandboxes; status 0 only when every one is valid."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("environments", nargs="*", metavar="ID")
        parser.add_argument("--all", action="store_true", help="every environment")
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Verify and print."""
        if bool(options["environments"]) == options["all"]:
            raise CommandError("name environments, or say --all")
        wanted = (
            Environment.objects.order_by("pk")
            if options["all"]
            else find_environments(options["environments"])
        )
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            rows = list(pool.map(_verify, list(wanted)))
        if not rows:
            raise CommandError("nothing to verify; import environments first")
        self._print(rows, is_json=options["json"])
        bad = [row for row in rows if row.verdict != "passed"]
        if bad:
            raise CommandError(f"{len(bad)} of {len(rows)} are not valid; see the matrix")

    def _print(self, rows: list[Verification], *, is_json: bool) -> None:
        if is_json:
            self.stdout.write(json.dumps({"verifications": [_as_json(row) for row in rows]}))
            return
        gates = list(dict.fromkeys(g.gate for row in rows for g in row.gates.all()))
        table = []
        for row in rows:
            answers = {gate.gate: MARKS[gate.status] for gate in row.gates.all()}
            environment = row.environment
            table.append(
                [
                    environment.pk,
                    environment.short_digest,
                    environment.name,
                    *[answers.get(gate, "") for gate in gates],
                    row.verdict or row.status,
                ]
            )
        self.stdout.write(format_table(["id", "digest", "name", *gates, "verdict"], table))
        for row in rows:
            for gate in row.gates.exclude(status="passed").exclude(status="not_applicable"):
                self.stdout.write(f"{row.environment.name}: {gate.gate}: {gate.reason}")


def _verify(environment: Environment) -> Verification:
    """One new verification, carried out in this thread."""
    try:
        with dispatch.muted():
            verification = verifications.open_verification(environment, TrialStatus.QUEUED)
            work.work_on_verification(verification.pk, wiring.runner(), wiring.worker_name())
        verification.refresh_from_db()
        return verification
    finally:
        connection.close()


def _as_json(row: Verification) -> dict[str, Any]:
    return {
        "environment": row.environment_id,
        "name": row.environment.name,
        "digest": row.environment.digest,
        "verdict": row.verdict,
        "sandboxes": row.sandboxes,
        "gates": {
            gate.gate: {"status": gate.status, "reason": gate.reason, "figures": gate.figures}
            for gate in row.gates.all()
        },
    }
