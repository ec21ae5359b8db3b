"""Harbor's view of a bundle: its content digest, its ignore rules, its canary lines.

Written from Harbor 0.26's behaviour and compared with Harbor itself in `tests/interop/`.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from pathspec import GitIgnoreSpec, PathSpec

from evolution.tree import Tree
from sandbox.contracts import SandboxFile

_SINGLES = ("task.toml", "instruction.md", "README.md", "trajectory.json")
_FOLDERS = ("environment", "tests", "solution", "steps")
_DEFAULT_IGNORES = ("__pycache__/", "*.pyc", ".DS_Store", "*.swp", "*.swo", "*~")
_IGNORE_FILE = ".harborignore"
_IGNORE_SCOPES = ("/tests/", "/solution/", "/steps/*/tests/", "/steps/*/solution/")
_CANARY = re.compile(r"^(<!--.*canary.*-->|#.*canary.*)$", re.IGNORECASE)


def strip_canary(text: str) -> str:
    """The instruction as a solver sees it: without leading canary lines and the blanks after them.

    The file itself keeps them, byte for byte.
    """
    lines = text.split("\n")
    start = 0
    while start < len(lines) and _CANARY.match(lines[start].strip()):
        start += 1
    while start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:])


@lru_cache(maxsize=256)
def _rules(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(patterns)


class IgnoreRules:
    """Harbor's `.harborignore`: which test and solution files are no part of the task."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def excludes(self, path: str) -> bool:
        """Whether a path, or the place inside the bundle where it leads, is excluded."""
        if self._matches(path):
            return True
        place = self._tree.resolve(path)
        return place is not None and place != path and self._matches(place)

    def _folder_rules(self, folder: str) -> GitIgnoreSpec | None:
        if not _in_scope(f"{folder}/"):
            return None
        file = self._tree.file(f"{folder}/{_IGNORE_FILE}")
        return _rules(tuple(_decoded(file).splitlines())) if file is not None else None

    def _matches(self, path: str) -> bool:
        if posixpath.basename(path) == _IGNORE_FILE:
            return True
        if not _in_scope(path + ("/" if self._tree.is_folder(path) else "")):
            return False
        rules: list[tuple[str, GitIgnoreSpec]] = []
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            folder, place = "/".join(parts[: count - 1]), "/".join(parts[:count])
            own = self._folder_rules(folder) if folder else None
            if own is not None:
                rules.append((f"{folder}/", own))
            suffix = "/" if place != path or self._tree.is_folder(path) else ""
            if _in_scope(place + suffix) and _is_excluded(place + suffix, rules):
                return True
        return False


def _is_excluded(place: str, rules: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """The last rule that speaks of a place decides, deeper folders after shallower ones."""
    excluded = False
    for folder, spec in rules:
        answer = spec.check_file(place[len(folder) :]).include
        if answer is not None:
            excluded = answer
    return excluded


def _in_scope(path: str) -> bool:
    return bool(_rules(_IGNORE_SCOPES).match_file(path))


def _decoded(file: SandboxFile) -> str:
    return file.data.decode().replace("\r\n", "\n").replace("\r", "\n")


def included(files: Iterable[SandboxFile], folder: str) -> tuple[SandboxFile, ...]:
    """What Harbor uploads of a folder: its files without the ignored ones, relative to it."""
    tree = tuple(files)
    rules = IgnoreRules(Tree(tree))
    head = f"{folder}/"
    return tuple(
        SandboxFile(file.path[len(head) :], file.data, file.mode, file.link)
        for file in tree
        if file.path.startswith(head) and not _excludes_chain(rules, file.path, len(head))
    )


def _excludes_chain(rules: IgnoreRules, path: str, start: int) -> bool:
    ends = [i for i, c in enumerate(path) if c == "/" and i >= start] + [len(path)]
    return any(rules.excludes(path[:end]) for end in ends)


def harbor_digest(files: Iterable[SandboxFile]) -> str:
    """Harbor's content digest, in hex; lock files, manifests and registries prefix "sha256:".

    Covers the package's regular files by path and content, links as what they lead to; not modes,
    empty folders, or other files at the root. Raises UnicodeDecodeError when an ignore file is no
    UTF-8, as Harbor does.
    """
    tree = Tree(files)
    ignored = _git_ignored(tree)
    total = hashlib.sha256()
    for path in sorted(path for path in _packaged(tree) if not ignored.match_file(path)):
        file = tree.file(path)
        if file is not None:
            total.update(f"{path}\0{hashlib.sha256(file.data).hexdigest()}\n".encode())
    return total.hexdigest()


def _git_ignored(tree: Tree) -> PathSpec[Any]:
    file = tree.file(".gitignore")
    lines = _DEFAULT_IGNORES if file is None else tuple(_decoded(file).splitlines())
    spec: PathSpec[Any] = PathSpec.from_lines("gitignore", lines)
    return spec


def _packaged(tree: Tree) -> Iterator[str]:
    rules = IgnoreRules(tree)
    yield from (name for name in _SINGLES if tree.file(name) is not None)
    for folder in _FOLDERS:
        if tree.is_folder(folder) and not rules.excludes(folder):
            yield from _walk(tree, rules, folder)


def _walk(tree: Tree, rules: IgnoreRules, folder: str) -> Iterator[str]:
    for name in tree.names(folder):
        path = f"{folder}/{name}"
        if rules.excludes(path):
            continue
        if tree.file(path) is not None:
            yield path
        elif tree.is_folder(path) and not tree.is_link(path):
            yield from _walk(tree, rules, path)
