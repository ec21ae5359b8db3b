"""Kinds of defects: each is a few ways to spoil a sound work, or the bundle that was made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from bench.corpus.layout import OUT, Work
from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile

JSON_STYLES = ("region_totals", "ini_to_json", "zipped_sheets", "damaged_files", "reconciled")
"""Styles with one JSON result, whose instruction says nothing of its form."""
LINE_STYLES = ("fixed_width", "cron_runs", "coded_messages", "contents", "printed_report")
"""Styles with one result of lines."""
TABLE_STYLES = ("latest_contacts", "error_bursts", "same_content", "wide_table", "binary_records")
"""Styles with one result of comma-separated rows."""
ONE_FILE = (*JSON_STYLES, *LINE_STYLES, *TABLE_STYLES)
"""Styles whose work is one file in `/app/out`."""

ROWS = (*TABLE_STYLES, *LINE_STYLES)
"""Styles with one result whose right bytes are known beforehand."""

Spoil = Callable[[Work, Random], Work]
SpoilBundle = Callable[[Bundle, Work, Random], Bundle]


@dataclass(frozen=True, slots=True)
class Defect:
    """One way to spoil. Exactly one of `work` and `bundle` is there; `styles` are those it fits."""

    name: str
    work: Spoil | None = None
    bundle: SpoilBundle | None = None
    styles: tuple[str, ...] = ONE_FILE


def separate(work: Work) -> Work:
    """The work, judged in a clean sandbox by functions, which is where most defects begin."""
    return replace(work, is_shared=False, agent_user="", make="functions")


def output_of(work: Work) -> str:
    """The only output of a work, by path."""
    return next(iter(work.outputs))


def then(work: Work, more: str) -> Work:
    """The work with a further step of its solution."""
    return replace(work, solve=f"{work.solve.rstrip()}\n{more.strip()}\n")


def first(work: Work, more: str) -> Work:
    """The work with a step before its solution."""
    return replace(work, solve=f"{more.strip()}\n{work.solve}")


def also_told(work: Work, more: str) -> Work:
    """The work with a further line of its instruction."""
    return replace(work, instruction=f"{work.instruction.strip()}\n{more}\n")


def with_output(work: Work, name: str, data: bytes, more: str) -> Work:
    """The work with one more output that a further step makes."""
    return then(replace(work, outputs={**work.outputs, f"{OUT}/{name}": data}), more)


def texts(bundle: Bundle, files: dict[str, str]) -> Bundle:
    """The bundle with these files put in or replaced; scripts are executable."""
    return bundle.with_files(
        SandboxFile(path, text.encode(), 0o755 if path.endswith(".sh") else 0o644)
        for path, text in files.items()
    )


def judged_by(bundle: Bundle, script: str) -> Bundle:
    """The bundle with another `test.sh`, which may call `judge`: what the old one did."""
    old = bundle.text("tests/test.sh")
    files = {"tests/test.sh": f"#!/bin/bash\n{script.strip()}\n", "tests/judge.sh": old}
    return texts(bundle, files)
