"""Skill x resources: the same result within a tighter budget."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import random
import tarfile
from itertools import chain

from evolution.composition import covers, step_path
from evolution.contracts import Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.gates.budgets import SHARE
from evolution.operators.base import Operator
from evolution.operators.inputs import site, writing_refusal
from evolution.operators.outputs import known_inputs, output_roots, outputs, outputs_refusal
from evolution.operators.restoring import free_pair
from evolution.operators.wrapping import Draft, build, part, step_pair, wrapping_refusal
from evolution.rendering import listed
from evolution.sequence import EditKind, Pair, SequenceEdit
from sandbox.contracts import SandboxFile

_GUARD = 1.02
_SMALLEST = 4_000
_LEAST_MEMORY_MB = 256
_LARGEST = 3_000_000
RUNGS = tuple(
    chain.from_iterable(
        (
            step * 10**power
            for step in (*range(100, 200, 5), *range(200, 400, 10), *range(400, 1000, 20))
        )
        for power in range(1, 6)
    )
)
"""The limits that are ever set, in bytes."""


class SizeBudget(Operator):
    """A reproducible hand-over archive of inputs and results, within a ceiling of bytes.

    Notch 1: an archive that is not compressed exceeds it. Notch 2: the usual gzip does, too.
    """

    name = "size_budget"
    title = "A reproducible hand-over archive within a byte limit"
    direction = Direction.SKILL
    aspect = Aspect.RESOURCES
    effect = Effect.BUDGET
    notches = (1, 2)
    number = 80

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses subjects with too little to pack for a limit to matter."""
        reason = (
            wrapping_refusal(self, subject) or outputs_refusal(subject) or writing_refusal(subject)
        )
        if reason:
            return reason
        memory = subject.bundle.config.get("environment", {}).get("memory_mb", _LEAST_MEMORY_MB)
        if memory < _LEAST_MEMORY_MB:
            return "there is too little memory for the stronger compressors"
        members = _members(subject)
        if sum(map(len, members.values())) > _LARGEST:
            return "its inputs are too large for a hand-over archive"
        return None if _limit(members, 1) else "there is too little to pack for a limit to matter"

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """See `Operator.apply`."""
        reason = self.applies_to(subject)
        if reason:
            raise ValueError(reason)
        members = _members(subject)
        limit = _limit(members, notch)
        if limit is None:
            notch, limit = 1, _limit(members, 1)
        _, folder = site(subject, "handover")
        archive = f"{folder}/case.archive"
        roots = output_roots(subject)
        given = [one.target for one in known_inputs(subject)]
        shared = {"ARCHIVE": archive, "INPUTS": given, "OUTPUTS": list(roots)}
        digests = {
            one.target: hashlib.sha256(one.data).hexdigest() for one in known_inputs(subject)
        }
        path = step_path(self.number, self.name)
        lazy = part(self.name, "naive.sh").decode()
        words = " ".join(given + list(roots))
        for name, value in {
            "ARCHIVE": archive,
            "FOLDER": folder,
            "FILES": words,
            "FLAG": "-z " * (notch > 1),
        }.items():
            lazy = lazy.replace(f"@{name}@", value)
        index = free_pair(subject)
        old = subject.sequence[index]
        phrase = f"{old.skill}, packed reproducibly into {limit:,} bytes"
        draft = Draft(
            notch=notch,
            edit=SequenceEdit(EditKind.REPLACE_SKILL, index, Pair(old.scenario, phrase)),
            statement=Statement(requirement=_requirement(archive, given, roots, limit or 0)),
            why="The work has to leave through a narrow gate: the solver must choose how to pack "
            "inputs and results to fit, and must take out of the archive what varies by chance.",
            steps=step_pair(
                path,
                part(self.name, "step.py", shared),
                "Packs inputs and results into the hand-over archive.",
            ),
            checks=part(
                self.name, "checks.py", {**shared, "INPUTS": digests, "LIMIT": limit}
            ).decode(),
            check_names=("within_limit", "archive"),
            artifacts=(archive,),
            facts=(
                ("budget_kind", "bytes"),
                ("budget_limit", str(limit)),
                ("budget_path", archive),
                ("artifact", archive),
                ("pair", str(index)),
            ),
            naive=(SandboxFile(path, lazy.encode(), 0o755),),
        )
        return build(self, subject, draft)


def _members(subject: Subject) -> dict[str, bytes]:
    """What goes into the archive, by absolute path."""
    roots = output_roots(subject)
    found = {one.target: one.data for one in known_inputs(subject) if not covers(roots, one.target)}
    found.update({file.path: file.data for file in outputs(subject)})
    return found


def _limit(members: dict[str, bytes], notch: int) -> int | None:
    """The lowest rung with room for the best packing, if the lazy one does not fit it."""
    plain = _tar(members)
    if len(plain) < _SMALLEST:
        return None
    best = min(len(pack(plain)) for pack in (gzip.compress, bz2.compress, lzma.compress))
    lazy = len(plain) if notch == 1 else len(gzip.compress(plain, 6))
    room = best * (1.1 if notch == 1 else _GUARD) / SHARE
    rung = next((rung for rung in RUNGS if rung >= room), None)
    return rung if rung is not None and rung * _GUARD < lazy else None


def _tar(members: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(members):
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size = len(members[path])
            archive.addfile(info, io.BytesIO(members[path]))
    return whole.getvalue()


def _requirement(archive: str, given: list[str], roots: tuple[str, ...], limit: int) -> str:
    inputs = f", and of the inputs {listed(given)}" if given else ""
    return (
        f"The case is handed over as one file, `{archive}`, of at most {limit:,} bytes: a tar "
        f"archive (in any compression that Python's `tarfile` opens) of every file of "
        f"{listed(roots)}{inputs}. Its members are regular files only, named by their full path "
        "without the leading slash and in bytewise order of these names, with owner and group 0, "
        "mode 0644 and modification time 0, so that packing the same case again gives the same "
        "listing."
    )
