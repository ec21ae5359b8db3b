#!/usr/bin/env python3
"""Django's command line, with Ratchet's settings."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command named on the command line; an error is one line and a status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db.utils import OperationalError, ProgrammingError
        from psycopg.errors import UndefinedColumn, UndefinedTable
    except ImportError as error:
        sys.exit(f"{error}: run `make setup` first, then .venv/bin/python manage.py")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader had enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
    except (ImproperlyConfigured, OperationalError) as error:
        sys.exit(f"ratchet: {' '.join(str(error).split())}")
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
            raise
        sys.exit(
            "ratchet: the database is not set up for this version:"
            " run `manage.py migrate` (`demo` and `serve` do it themselves)"
        )


if __name__ == "__main__":
    main()
