"""manage.py doctor"""

from __future__ import annotations

import dataclasses
import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.diagnosis import Finding, Level, diagnose

EXAMPLES = """examples:
  manage.py doctor             one line for each thing: ok, warn or fail, and what to do
  manage.py doctor --json      the same as one JSON object

The status is 0 when the main job can run here: a warning does not stop it.
"""


class Command(BaseCommand):
    """What is reachable."""

    help = "Say what works on this machine, and what to do about what does not."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")

    def handle(self, *_: Any, **options: Any) -> None:
        """Report each finding as soon as it is there."""
        findings = []
        for finding in diagnose():
            findings.append(finding)
            if not options["json"]:
                self.stdout.write(_as_line(finding))
                self.stdout.flush()
        failed = [finding.name for finding in findings if finding.level is Level.FAIL]
        if options["json"]:
            table = [dataclasses.asdict(finding) for finding in findings]
            self.stdout.write(json.dumps({"can_run": not failed, "findings": table}))
        if failed:
            raise CommandError(f"the main job cannot run here: {', '.join(failed)}")


def _as_line(finding: Finding) -> str:
    remedy = f"  ->  {finding.remedy}" if finding.remedy else ""
    return f"{finding.level:<5} {finding.name:<11} {finding.text}{remedy}"
