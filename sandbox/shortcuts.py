"""Links among the artifacts that would lead a verifier to its own tests or rewards."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from sandbox.contracts import SandboxFile

_KEPT_FROM_SOLVERS = ("/tests", "/logs/verifier", "/solution", "/proc")
"""What a solver's outputs have no business with. `/proc` leads anywhere."""


def without_shortcuts(
    files: Iterable[SandboxFile],
) -> tuple[tuple[SandboxFile, ...], tuple[str, ...]]:
    """The files without such links, and the paths of those links.

    An output folder that is a link to `/tests` would be judged by comparing the expected results
    with themselves. A link to a folder above counts, too: `/` holds the tests.
    """
    everything = tuple(files)
    folders = _folders(file.path for file in everything)
    kept: list[SandboxFile] = []
    dropped: list[str] = []
    for file in everything:
        if file.link is not None and _leads_there(file.path, file.link, folders):
            dropped.append(file.path)
        else:
            kept.append(file)
    return tuple(kept), tuple(dropped)


def _folders(paths: Iterable[str]) -> frozenset[str]:
    """All folders above these paths."""
    found: set[str] = set()
    for path in paths:
        while (path := posixpath.dirname(path)) not in found:
            found.add(path)
    return frozenset(found)


def _leads_there(path: str, link: str, folders: frozenset[str]) -> bool:
    """Whether a link leads to such a place, to what lies in it, or to a folder above it.

    `..` behind a name is understood only where that is one of the `folders`. Others may be links
    of the image, and lead there: `/var/run/../tests` is `/tests`.
    """
    at = "/" if link.startswith("/") else posixpath.dirname(path)
    has_name = False
    for name in link.split("/"):
        if name == "..":
            if has_name and at not in folders:
                return True
            at = posixpath.dirname(at)
        elif name not in ("", "."):
            at, has_name = posixpath.join(at, name), True
    above = at if at == "/" else f"{at}/"
    return any(
        at == place or at.startswith(f"{place}/") or place.startswith(above)
        for place in _KEPT_FROM_SOLVERS
    )
