"""Damages to a reference solution: its shell scripts, its Python programs, its data."""

from __future__ import annotations

import random
from collections.abc import Iterator
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
    queues = [queue for file in targets if (queue := _of_file(files, file, rng))]
    rng.shuffle(queues)
    while queues:
        for queue in queues:
            yield queue.pop(0)
        queues = [queue for queue in queues if queue]


def _of_file(files: tuple[SandboxFile, ...], file: SandboxFile, rng: random.Random) -> list[Mutant]:
    text = text_of(file.data)
    if text is None:
        return []
    found: list[python.Edit] = []
    if file.path.endswith(".py") or text.startswith("#!/usr/bin/env python"):
        found = python.edits(text)
    elif file.path.endswith(".sh") or text.startswith("#!/bin/"):
        found = shell.edits(text)
        for place, body in shell.python_bodies(text):
            found += [
                replace(edit, start=edit.start + place, end=edit.end + place)
                for edit in python.edits(body)
            ]
    made = []
    for edit in python.in_turn(found, rng):
        data = python.apply(text, edit).encode()
        if data != file.data:
            changed = tuple(replace(f, data=data) if f is file else f for f in files)
            made.append(Mutant(edit.kind, file.path, show(file.data, data), files=changed))
    return made
