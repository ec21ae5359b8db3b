"""Damages to a reference solution: its shell scripts, its Python programs, its data."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

from evolution.gates.mutation import python, shell
from evolution.gates.mutation.mutant import Mutant, show, text_of
from sandbox.contracts import SandboxFile

_DRIVER = "solve.sh"
_STEPS = "steps/"


def solution_mutants(files: tuple[SandboxFile, ...], rng: random.Random) -> Iterator[Mutant]:
    """Damages to a solution in a seeded order, the files and the kinds in turn; it ends.

    The driver of a composed solution is left alone: it only starts the steps.
    """
    is_composed = any(file.path.startswith(_STEPS) for file in files)
    targets = [f for f in files if f.link is None and not (is_composed and f.path == _DRIVER)]
    turns = [_of_file(files, file, python.in_turn(edits_of(file), rng)) for file in targets]
    rng.shuffle(turns)
    while turns:
        made = [(turn, next(turn, None)) for turn in turns]
        yield from (mutant for _, mutant in made if mutant is not None)
        turns = [turn for turn, mutant in made if mutant is not None]


def edits_of(file: SandboxFile) -> list[python.Edit]:
    """Every damage that a file of a solution offers."""
    text = text_of(file.data)
    if text is None:
        return []
    if file.path.endswith(".py") or text.startswith("#!/usr/bin/env python"):
        return python.edits(text)
    if not file.path.endswith(".sh") and not text.startswith("#!/bin/"):
        return []
    found = shell.edits(text)
    for place, body in shell.python_bodies(text):
        found += [
            replace(edit, start=edit.start + place, end=edit.end + place)
            for edit in python.edits(body)
        ]
    return found


def _of_file(
    files: tuple[SandboxFile, ...], file: SandboxFile, edits: Iterable[python.Edit]
) -> Iterator[Mutant]:
    for edit in edits:
        data = python.apply(file.data.decode(), edit).encode()
        if data != file.data:
            changed = tuple(replace(f, data=data) if f is file else f for f in files)
            yield Mutant(edit.kind, file.path, show(file.data, data), files=changed)
