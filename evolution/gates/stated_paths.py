"""Results that the instruction calls by another path than the tests read.

A path is misnamed when the tests read a file that the reference solution left there, nothing that a
solver can read names it, and the instruction names in its place one that resembles it and that the
reference solution neither read nor wrote.
"""

from __future__ import annotations

import posixpath
import re

from evolution.bundle import Bundle
from evolution.gates.mutation.mutant import text_of
from sandbox.contracts import SandboxFile, Trace

_PATH = re.compile(r"(?<![\w/.:~$}*-])/(?:[\w.+-]+/)*[\w+-][\w.+-]*")
_FILE = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")


def misnamed(
    bundle: Bundle, made: tuple[SandboxFile, ...], trace: Trace | None
) -> list[tuple[str, str]]:
    """The pairs of what the instruction names and what the tests read; empty where all is well.

    `made` is what the reference solution left; what it did has to be known.
    """
    if trace is None or trace.is_blind:
        return []
    told = bundle.displayed_instruction
    named = {match.rstrip(".") for match in _PATH.findall(told)}
    known = "\n".join((told, *_texts(bundle, "environment")))
    tests = "\n".join(_texts(bundle, "tests"))
    touched = {*trace.read, *trace.written, *(file.path for file in made)}
    images = {posixpath.basename(file.path) for file in bundle.folder("environment")}
    open_ends = [
        path
        for path in sorted(named - touched)
        if _FILE.search(path)
        and posixpath.basename(path) not in images
        and path not in tests
        and not any(one.startswith(f"{path}/") for one in touched)
    ]
    wanted = [
        path
        for path in sorted({file.path for file in made} or set(trace.written))
        if _is_read(path, tests) and path not in known and not _is_named_apart(path, told, named)
    ]
    return [(said, path) for path in wanted for said in open_ends if _resembles(said, path)]


def _texts(bundle: Bundle, folder: str) -> list[str]:
    files = bundle.folder(folder)
    return [text for file in files if file.link is None and (text := text_of(file.data))]


def _is_read(path: str, tests: str) -> bool:
    return re.search(rf"{re.escape(path)}(?![\w.+-])", tests) is not None


def _is_named_apart(path: str, told: str, named: set[str]) -> bool:
    """Whether folder and name of a file are both said, each by itself."""
    folder, name = posixpath.split(path)
    return folder in named and re.search(rf"(?<![\w/.-]){re.escape(name)}\b", told) is not None


def _resembles(said: str, path: str) -> bool:
    """Whether one may be a slip for the other: the same name elsewhere, or the same place."""
    (said_folder, said_name), (folder, name) = posixpath.split(said), posixpath.split(path)
    if said_name.lower() == name.lower():
        return True
    ends = [posixpath.splitext(one) for one in (said_name, name)]
    return said_folder == folder and (ends[0][0] == ends[1][0] or ends[0][1] == ends[1][1])
