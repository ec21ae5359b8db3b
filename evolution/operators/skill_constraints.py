"""Skill x constraints: the same result, reached with more care."""

from __future__ import annotations

import hashlib
import posixpath
import random
import shlex

from evolution.composition import artifacts_of, covers, step_path
from evolution.contracts import Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.operators import dockerfile
from evolution.operators.base import Operator, facts
from evolution.operators.inputs import dockerfile_of, inputs, is_built_plainly
from evolution.operators.restoring import free_pair
from evolution.operators.wrapping import Draft, build, part, wrapping_refusal
from evolution.rendering import listed
from evolution.sequence import EditKind, Pair, SequenceEdit
from sandbox.contracts import SandboxFile

_MOST_FILES = 200


class CollateralGuard(Operator):
    """Nothing but the results may change: the folders of the inputs are judged as well.

    The wrong solution that it finds out sorts an input in place, or leaves a scratch file there.
    """

    name = "collateral_guard"
    title = "Inputs and their folders must stay untouched"
    direction = Direction.SKILL
    aspect = Aspect.CONSTRAINTS
    effect = Effect.VERIFIER
    version = 2
    notches = (1,)
    number = 95

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses subjects whose inputs lie among their outputs, or whose image code builds."""
        reason = wrapping_refusal(self, subject)
        if reason:
            return reason
        text = dockerfile_of(subject)
        if text is None or not is_built_plainly(text):
            return "what its image holds cannot be told from its Dockerfile"
        folders = guarded_folders(subject)
        if not folders:
            return "its inputs have no folder of their own that the work leaves alone"
        if len(_content(subject, folders)) > _MOST_FILES:
            return "there are too many files to guard"
        return None

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """See `Operator.apply`."""
        reason = self.applies_to(subject)
        if reason:
            raise ValueError(reason)
        folders = guarded_folders(subject)
        content = _content(subject, folders)
        restored = [p for d in subject.demands for p in facts(d, "input") if covers(folders, p)]
        constants = {
            "FOLDERS": list(folders),
            "EXPECTED": {path: hashlib.sha256(content[path]).hexdigest() for path in content},
            "RESTORED": sorted(restored),
        }
        index = free_pair(subject)
        old = subject.sequence[index]
        verb = "is" if len(folders) == 1 else "are"
        careless = _careless(folders, content, rng)
        draft = Draft(
            notch=1,
            edit=SequenceEdit(
                EditKind.REPLACE_SKILL, index, Pair(old.scenario, f"{old.skill}, leaving no trace")
            ),
            statement=Statement(
                requirement=f"{listed(folders)} {verb} shared with others: no file there is "
                "altered, renamed or removed, and none is added"
                + (" but those that have to be restored there." if restored else ".")
            ),
            why="Working in place, or leaving backups and scratch files beside the inputs, now "
            "counts as damage: the solver has to keep its hands off what it reads.",
            steps=(),
            checks=part("collateral_guard", "checks.py", constants).decode(),
            check_names=("untouched",),
            artifacts=folders,
            facts=(
                *(("guarded", folder) for folder in folders),
                *(("artifact", folder) for folder in folders),
                ("pair", str(index)),
            ),
            careless=(SandboxFile(step_path(self.number, self.name), careless.encode(), 0o755),),
        )
        return build(self, subject, draft)


def guarded_folders(subject: Subject) -> tuple[str, ...]:
    """The inputs' folders that can be guarded: none of the work's own writing goes there."""
    delivered = artifacts_of(subject.bundle)
    restored = {path for demand in subject.demands for path in facts(demand, "input")}
    trace = subject.oracle.result.trace if subject.oracle else None
    touched = (*trace.written, *trace.deleted) if trace else ()
    written = [path for path in touched if path not in restored]
    root = dockerfile.workdir(dockerfile_of(subject) or "")
    found = set()
    for one in inputs(subject):
        folder = _top(one.target, root)
        is_ours = any(covers([folder], path) and path not in restored for path in delivered)
        if folder in ("/", root) or is_ours or covers(delivered, folder):
            continue
        if not any(covers([folder], path) and path != folder for path in written):
            found.add(folder)
    return tuple(sorted(found))


def _top(target: str, root: str) -> str:
    """The folder of an input that lies right below the working directory, else its own."""
    inside = root != "/" and target.startswith(f"{root}/")
    head, rest = (root, target[len(root) + 1 :]) if inside else (posixpath.dirname(target), "")
    return f"{head}/{rest.split('/')[0]}" if "/" in rest else head


def _content(subject: Subject, folders: tuple[str, ...]) -> dict[str, bytes]:
    """What the image has in these folders, by path."""
    context = {file.path: file for file in subject.bundle.folder("environment")}
    copied = dockerfile.copied_files(dockerfile_of(subject) or "", context)
    return {
        one.target: context[one.context].data
        for one in sorted(copied, key=lambda copy: copy.target)
        if covers(folders, one.target) and context[one.context].link is None
    }


def _careless(folders: tuple[str, ...], content: dict[str, bytes], rng: random.Random) -> str:
    """A step that works in place: an input sorted where it lies, else a scratch file left."""
    unsorted = []
    for path, data in content.items():
        lines = data.splitlines(keepends=True)
        if lines and data.endswith(b"\n") and b"\0" not in data and lines != sorted(lines):
            unsorted.append(path)
    if unsorted:
        path = shlex.quote(rng.choice(unsorted))
        work = f"# Quicker to look things up in.\nLC_ALL=C sort -o {path} {path}\n"
    else:
        work = f"# Notes of the work.\necho started > {shlex.quote(folders[0] + '/.progress')}\n"
    return f"#!/bin/bash\nset -euo pipefail\n{work}"
