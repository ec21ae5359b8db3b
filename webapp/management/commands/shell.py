"""manage.py shell ID — a terminal inside an environment's sandbox.

Django's own shell keeps its name where no ID is given.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands.shell import Command as DjangoShell

from evolution import execution
from sandbox.contracts import SandboxFile
from sandbox.errors import SandboxError
from sandbox.interactive import open_terminal
from webapp import wiring
from webapp.management.reporting import add_sandbox_option, find_environments
from webapp.store import load_bundle

EXAMPLES = """examples:
  manage.py shell nginx-log-forensics              a terminal where the solver would work
  manage.py shell 12 --solution --tests            with /solution and /tests at hand
  manage.py shell 12 --sandbox docker              in a Docker container
  manage.py shell                                  Django's own Python shell
"""


class Command(DjangoShell):
    """A terminal in a sandbox, to touch an environment; without an ID, Django's shell."""

    help = "Open a terminal inside an environment's sandbox (by id, digest or name)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        super().add_arguments(parser)  # type: ignore[arg-type]
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("environment", nargs="?", metavar="ID")
        parser.add_argument("--solution", action="store_true", help="put /solution there, too")
        parser.add_argument("--tests", action="store_true", help="put /tests there, too")
        add_sandbox_option(parser)

    def handle(self, **options: Any) -> None:
        """Open it; the status is the terminal's own."""
        if not options["environment"]:
            super().handle(**options)
            return
        environment = find_environments([options["environment"]])[0]
        bundle = load_bundle(environment)
        folders: list[tuple[str, tuple[SandboxFile, ...]]] = []
        if options["solution"]:
            folders.append(("/solution", bundle.folder("solution")))
        if options["tests"]:
            folders.append(("/tests", bundle.folder("tests")))
        self.stderr.write("With Harbor, on the exported folder: harbor run -p FOLDER -a oracle")
        spec, network = execution.image_spec(bundle), execution.network(bundle)
        limits, runner = execution.limits(bundle), wiring.runner(choice=options["sandbox"])
        try:
            backend = runner.backend_for([spec], network, limits)
            image = backend.prepare(spec)
            status = open_terminal(backend, image, limits, network, folders)
        except SandboxError as error:
            raise CommandError(str(error)) from None
        if status:
            raise CommandError(f"the terminal ended with status {status}", returncode=status)
