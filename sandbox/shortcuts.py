"""Links among the artifacts that would lead a verifier to its own tests or rewards."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from sandbox.contracts import SandboxFile

_KEPT_FROM_SOLVERS = ("/tests", "/logs", "/solution", "/proc")
"""What a solver's outputs have no business with. `/proc` leads anywhere."""


def without_shortcuts(
    files: Iterable[SandboxFile],
) -> tuple[tuple[SandboxFile, ...], tuple[str, ...]]:
    """The files without such links, and the paths of those links.

    An output folder that is a link to `/tests` would be judged by comparing the expected results
    with themselves. A link to a folder above counts, too: `/` holds the tests.
    """
    kept: list[SandboxFile] = []
    dropped: list[str] = []
    for file in files:
        if file.link is not None and _leads_there(file.path, file.link):
            dropped.append(file.path)
        else:
            kept.append(file)
    return tuple(kept), tuple(dropped)


def _leads_there(path: str, link: str) -> bool:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    target = "/" + target.lstrip("/")
    return target == "/" or any(
        target == place or target.startswith(f"{place}/") for place in _KEPT_FROM_SOLVERS
    )
