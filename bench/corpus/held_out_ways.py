"""How a held-out defect is put into a sound work: further steps, data, words, and other checks.

In all texts `@out` stands for the result's path, `@in` for the first input's, `@want` for the path
of what is expected, `@sum` for its SHA-256, `@rows` for a JSON list of its lines' numbers from 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from bench.corpus.defects import (
    ROWS,
    Defect,
    also_told,
    first,
    judged_by,
    output_of,
    separate,
    then,
)
from bench.corpus.harness import slug
from bench.corpus.layout import OUT, Work
from evolution.bundle import Bundle

_HEAD = """\
import csv
import itertools
import json
import os
import re

PATH = {path!r}
WANTED = {wanted!r}
LINES = [line.rstrip() for line in WANTED.splitlines()]


def read():
    return open(PATH).read()


"""


def _filled(text: str, work: Work) -> str:
    path, wanted = next(iter(work.outputs.items()))
    marks = {
        "@out": path,
        "@in": f"/app/data/{next(iter(work.data))}",
        "@want": f"/tests/expected/{slug(path)}",
        "@sum": hashlib.sha256(wanted).hexdigest(),
        "@rows": str(list(range(len(wanted.decode().splitlines())))),
    }
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text


def way(
    why: str,
    *,
    styles: tuple[str, ...] = ROWS,
    checks: str = "",
    more: str = "",
    told: str = "",
    before: str = "",
    step: str = "",
    data: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
    **changes: Any,
) -> Defect:
    """A work spoiled by any of these: checks instead of or beside its own, a sentence of the
    instruction, a step before or after its solution, data, outputs, and fields of the work.
    `data` are further files below `/app/data`.
    """

    def spoil(work: Work, rng: Random) -> Work:
        path, right = next(iter(work.outputs.items()))
        results = {f"{OUT}/{name}": text.encode() for name, text in (outputs or {}).items()}
        made = replace(
            separate(work),
            data={**work.data, **{p: _filled(t, work).encode() for p, t in (data or {}).items()}},
            outputs={**work.outputs, **results},
            more_checks=f"\n\n{_filled(more, work).strip()}\n" if more else "",
            **changes,
        )
        if checks:
            head = _HEAD.format(path=path, wanted=right.decode())
            made = replace(made, checks=f"{head}{_filled(checks, work).strip()}\n")
        if told:
            made = also_told(made, told)
        if before:
            made = first(made, _filled(before, work))
        return then(made, _filled(step, work)) if step else made

    return Defect(why, work=spoil, styles=styles)


def judged(why: str, verdict: str = "", *, script: str = "", **spoiled: Any) -> Defect:
    """A work judged by a shell script, and spoiled as by `way`.

    `verdict` is the body of a function whose status is the verdict; `script` writes the reward.
    """
    lines = f"judge() (\n{verdict}\n)\nif judge; then reward=1; else reward=0; fi"
    text = script or f"{lines}\necho $reward > /logs/verifier/reward.txt"

    def spoil(bundle: Bundle, work: Work, rng: Random) -> Bundle:
        return judged_by(bundle, _filled(text, work))

    return replace(way(why, **spoiled), bundle=spoil)


def told_otherwise(why: str, other: Callable[[str], str], **spoiled: Any) -> Defect:
    """A work whose instruction gives its result another path than the tests and solution know."""

    def spoil(work: Work, rng: Random) -> Work:
        path = output_of(work)
        said = work.instruction.replace(path, other(path))
        if said == work.instruction:
            raise ValueError(f"the instruction does not name {path}")
        return replace(separate(work), instruction=said)

    return Defect(why, work=spoil, **spoiled)
