"""What commands share: progress on a terminal, tables, and how environments are named."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.db.models import Q, QuerySet

from evolution.llm.budget import Limits
from evolution.plain_text import plain
from sandbox.choice import SandboxChoice
from webapp.lifecycle import RunStatus
from webapp.models import Environment, EvolutionRun, Import, Verification
from webapp.selectors.findings import Severity, count_by_severity, findings

REASON_WIDTH = 140
"""Characters of a reason in a table; the page and `--json` have the whole."""


WAITING_CAP = 120
"""How much is told of why a step waits, in characters."""

_ID = re.compile(r"[0-9]{1,18}")


class ProgressLine:
    """One line that rewrites itself on a terminal, and a plain line now and then in a pipe."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._is_terminal = sys.stderr.isatty()
        self._last = ""

    def show(self, run: EvolutionRun) -> None:
        """Where a run stands."""
        total = run.lineages.count() * run.generations * run.children
        done = run.steps.exclude(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]).count()
        valid = run.steps.filter(child__isnull=False).count()
        text = f"run {run.pk}: {done} of at most {total} steps, {valid} accepted"
        waiting = run.steps.filter(status=RunStatus.QUEUED).exclude(error="").first()
        if waiting is not None:
            text += f"; a step waits: {waiting.error[:WAITING_CAP]}"
        if text == self._last:
            return
        self._last = text
        if self._is_terminal:
            self._out.write(f"\r{text}\033[K", ending="")
        elif done % 5 == 0 or waiting is not None:
            self._out.write(text)

    def end(self) -> None:
        """Leave the line."""
        if self._is_terminal and self._last:
            self._out.write("")


def add_sandbox_option(parser: ArgumentParser) -> None:
    """`--sandbox`: another way to run sandboxes than RATCHET_SANDBOX says, this once."""
    parser.add_argument(
        "--sandbox",
        choices=[choice.value for choice in SandboxChoice],
        default="",
        help="how sandboxes are run (default: RATCHET_SANDBOX, else auto)",
    )


def add_budget_options(parser: ArgumentParser, seconds: str) -> None:
    """`--budget-…`: what models may take; `seconds` says in a word or two which ones count."""
    parser.add_argument("--budget-usd", type=float, metavar="X", help="hard stop, all calls")
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="in and out together")
    parser.add_argument("--budget-seconds", type=float, metavar="S", help=seconds)


def given_budget(options: Mapping[str, Any]) -> Limits:
    """The limits that were given by those options."""
    return Limits(options["budget_usd"], options["budget_tokens"], options["budget_seconds"])


def refuse_unheeded(options: Mapping[str, Any], unheeded: Mapping[str, Any], way: str) -> None:
    """Say so rather than drop what was asked for: a CommandError for the first such option.

    `unheeded`: the options that `way` does nothing with, and their defaults.
    """
    for name, default in unheeded.items():
        if options[name] != default:
            raise CommandError(f"--{name.replace('_', '-')} does not go with {way}")


def find_environments(names: Sequence[str]) -> QuerySet[Environment]:
    """Environments by id, digest (first eight digits or more), or name, which means the seed.

    Raises CommandError for a name that finds nothing.
    """
    wanted = Q(pk__in=[])
    for name in names:
        found = Q(parent=None) & (Q(name=name) | Q(name__endswith=f"/{name}"))
        if _ID.fullmatch(name):
            found |= Q(pk=int(name))
        if len(name) >= 8:
            found |= Q(digest__startswith=name)
        # What no database takes, as bytes that are no text, names nothing.
        if plain(name) != name or not Environment.objects.filter(found).exists():
            raise CommandError(f"no environment {name!r}: give an id, a digest, or a name")
        wanted |= found
    return Environment.objects.filter(wanted).order_by("pk")


def find_import(number: int) -> Import:
    """The import of that number. Raises CommandError when there is none."""
    batch = Import.objects.filter(pk=number).first()
    if batch is None:
        raise CommandError(f"no import {number}; the page /imports/ lists them")
    return batch


def format_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under a head; numbers to the right, text to the left."""
    rows = [list(row) for row in rows]
    cells = [list(head), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    is_number = [
        bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        for i in range(len(head))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in cells
    ]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def format_findings(verifications: QuerySet[Verification]) -> str:
    """What the gates found there, the gravest first, as a table; empty when they found nothing."""
    found = findings(verifications)
    if not found:
        return ""
    rows = [
        [
            one.severity.label,
            one.environment.pk,
            one.environment.name,
            one.record.gate,
            "no answer" if one.severity is Severity.UNANSWERED else one.record.status,
            plain(one.record.reason)[:REASON_WIDTH],
        ]
        for one in found
    ]
    table = format_table(["severity", "id", "environment", "gate", "answer", "reason"], rows)
    more = sum(count_by_severity(verifications).values()) - len(found)
    return f"{table}\n… and {more} more" if more > 0 else table
