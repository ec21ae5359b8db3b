"""`manage.py serve`: everything for one machine, in the foreground."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import time
from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.embedded import broker
from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.supervisor import Supervisor, listen, web_part, worker_parts
from webapp.keys import key_variables

LOOPBACK = ("127.0.0.1", "::1", "localhost")
READY_SECONDS = 60.0


class Command(BaseCommand):
    """Web, workers and beat together."""

    help = (
        "Web page, workers and beat together, for one machine. Ctrl-C ends them all.\n\n"
        "examples:\n"
        "  manage.py serve\n"
        "  manage.py serve --port 8080 --workers 4\n"
        "  SECRET_KEY=… ALLOWED_HOSTS=ratchet.example.org manage.py serve --host 0.0.0.0\n"
    )

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port; 0 takes a free one")
        parser.add_argument(
            "--workers",
            type=int,
            default=max(2, os.cpu_count() or 2),
            help="worker processes, one job at a time each (default: one per core)",
        )

    def handle(self, *_: Any, host: str, port: int, workers: int, **__: Any) -> None:
        if host not in LOOPBACK and settings.IS_LOOPBACK_ONLY:
            raise CommandError(
                f"--host {host} is beyond this machine: set ALLOWED_HOSTS (the names people use"
                " for it) and SECRET_KEY first"
            )
        try:
            with listen(host, port) as listener:
                call_command("migrate", interactive=False, verbosity=0)
                broker.purge(settings.BROKER_FOLDER)  # the rows know what is to be done
                self._serve(listener, workers)
        except KeyboardInterrupt:
            return  # it came before everything was up
        except EmbeddedUnavailable as error:
            raise CommandError(str(error)) from error

    def _serve(self, listener: socket.socket, workers: int) -> None:
        keys = key_variables()
        parts = [web_part(listener, keys), *worker_parts(workers, keys)]
        with Supervisor(parts, write=self._write_line) as supervisor:
            host, port = listener.getsockname()[:2]
            if wait_for_web(host, port, supervisor):
                shown = f"[{host}]" if ":" in host else host
                self.stdout.write(f"Ratchet is at http://{shown}:{port}/ (Ctrl-C ends it)")
                self.stdout.flush()
            supervisor.wait()
        if supervisor.failure:
            raise CommandError(supervisor.failure)

    def _write_line(self, line: str) -> None:
        sys.stderr.write(line + "\n")


def wait_for_web(host: str, port: int, supervisor: Supervisor) -> bool:
    """Whether the page answers, with any status, before it is too late or the parts gave up."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and not supervisor.failure:
        connection = http.client.HTTPConnection(host, port, timeout=2.0)
        try:
            connection.request("GET", "/healthz", headers={"Host": "localhost"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        else:
            return True
        finally:
            connection.close()
    return False
