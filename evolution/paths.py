"""Which paths, links and modes a bundle may have: one set of rules for every way in and out."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping

from evolution.tree import Tree
from sandbox.contracts import SandboxFile

NAME_CAP_BYTES = 255
PATH_CAP_BYTES = 1024
_DRIVE = re.compile(r"^[A-Za-z]:")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def path_problem(path: str) -> str | None:
    """Why this is no clean relative POSIX path, or None. Hostile and unportable paths alike."""
    if not path:
        return "empty path"
    if path.startswith("/"):
        return "absolute path"
    if _DRIVE.match(path):
        return "path with a drive letter"
    if "\\" in path:
        return "path with a backslash"
    if _CONTROL.search(path):
        return "path with a control character"
    if _SURROGATE.search(path):
        return "path that is not UTF-8"
    parts = path.split("/")
    if ".." in parts:
        return "path with '..'"
    if "." in parts or "" in parts:
        return "path that is not normalised"
    if any(len(part.encode()) > NAME_CAP_BYTES for part in parts):
        return f"name longer than {NAME_CAP_BYTES} bytes"
    if len(path.encode()) > PATH_CAP_BYTES:
        return f"path longer than {PATH_CAP_BYTES} bytes"
    return None


def link_problem(path: str, target: str) -> str | None:
    """Why a link at `path` may not point to `target`, judged by the words of this one link.

    Where a chain of links really leads is judged by `tree_problems`.
    """
    if not target:
        return "link without a target"
    if target.startswith("/") or _DRIVE.match(target) or "\\" in target:
        return f"link to {target!r} leaves the bundle"
    if _CONTROL.search(target) or _SURROGATE.search(target):
        return "link with an unprintable target"
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if place == ".." or place.startswith("../"):
        return f"link to {target!r} leaves the bundle"
    return None


def folded(path: str) -> str:
    """What a path becomes on a file system that ignores case and Unicode form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def tree_problems(files: Iterable[SandboxFile]) -> dict[str, str]:
    """What is wrong with the paths, links and modes of a tree: reason by path, empty when sound."""
    found: dict[str, str] = {}
    places: dict[str, str] = {}
    by_path = {file.path: file for file in files}
    tree = Tree(by_path.values())
    for path, file in by_path.items():
        reason = path_problem(path)
        if reason is None and file.link is not None:
            reason = link_problem(path, file.link)
            if reason is None and tree.resolve(path) is None:
                reason = f"link to {file.link!r} leads out of the bundle or round in a circle"
        if reason is None and file.mode & 0o7000:
            reason = f"mode {file.mode:o} has a setuid, setgid or sticky bit"
        if reason is None:
            reason = _ancestor_problem(path, by_path) or _collision(path, places)
        if reason is not None:
            found[path] = reason
    return found


def _ancestor_problem(path: str, by_path: Mapping[str, SandboxFile]) -> str | None:
    parent = posixpath.dirname(path)
    while parent:
        above = by_path.get(parent)
        if above is not None:
            kind = "link" if above.link is not None else "file"
            return f"lies below {parent!r}, which is a {kind}"
        parent = posixpath.dirname(parent)
    return None


def _collision(path: str, places: dict[str, str]) -> str | None:
    """Note every prefix of a path; answer with the earlier spelling that it collides with."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        prefix = "/".join(parts[:count])
        earlier = places.setdefault(folded(prefix), prefix)
        if earlier != prefix:
            return f"differs from {earlier!r} only in case or Unicode form"
    return None
