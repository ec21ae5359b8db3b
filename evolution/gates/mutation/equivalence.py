"""When a damaged state says the same as the whole one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from evolution.gates.mutation.mutant import text_of
from sandbox.contracts import SandboxFile, VerifierSpec

State = Mapping[str, SandboxFile]
"""Artifacts by absolute path."""


def effective(
    verifier: VerifierSpec, image: Iterable[SandboxFile], left: tuple[SandboxFile, ...]
) -> State:
    """What a separate verifier finds: the artifacts as the solver left them, over the image's own.

    A single file that a solver deletes is there again; in a folder that it left it stays away.
    """
    heads = tuple(f"{folder}/" for folder in verifier.replaced_folders(left))
    kept = (file for file in image if not file.path.startswith(heads))
    return {file.path: file for file in (*kept, *left)}


def is_equivalent(whole: State, other: State) -> bool:
    """Whether the other state holds every file of the whole one with the same meaning.

    Files that are only added do not make a difference: nothing that was asked for is damaged.
    """
    return all(path in other and is_same_meaning(file, other[path]) for path, file in whole.items())


def is_same_meaning(one: SandboxFile, two: SandboxFile) -> bool:
    """Equal bytes and links, or equal but for trailing white space, or the same JSON value."""
    if (one.link, one.data) == (two.link, two.data):
        return True
    if one.link is not None or two.link is not None:
        return False
    return meaning(one.data) == meaning(two.data)


def meaning(data: bytes) -> str | bytes:
    """A normal form: of JSON and JSON lines the value, of text the lines without trailing space."""
    text = text_of(data)
    if text is None:
        return data
    if text.lstrip()[:1] in ("{", "["):
        for read in (_canonical, _canonical_lines):
            try:
                return read(text)
            except (ValueError, RecursionError):  # no such JSON, or nested beyond reading
                continue
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def _canonical_lines(text: str) -> str:
    return "\n".join(_canonical(line) for line in text.splitlines() if line)


def state_key(state: State) -> str:
    """A digest by which two states that mean the same are one."""
    total = hashlib.sha256()
    for path in sorted(state):
        file = state[path]
        said = meaning(file.data) if file.link is None else f"-> {file.link}"
        total.update(_encoded(path) + b"\0")
        total.update(_encoded(said) if isinstance(said, str) else said)
        total.update(b"\0")
    return total.hexdigest()


def _encoded(text: str) -> bytes:
    """Text with lone surrogates, which names that are no UTF-8 have, and JSON may have."""
    return text.encode("utf-8", "surrogatepass")
