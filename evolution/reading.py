"""Bundles from disk: single folders, trees of folders, archives. Everything found is answered for.

What was counted in is what comes out: bundles and refusals, one each. Nothing is dropped in
silence, and one broken environment never stops the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from evolution.archive_search import find_in_archive
from evolution.bundle import BundleError
from evolution.folders import read_folder
from evolution.found import (
    ARCHIVE_SUFFIXES,
    NOTHING_HERE,
    PASSED_OVER,
    Found,
    FoundBundle,
    Refusal,
    folder_verdict,
    judged,
    os_reason,
    shown,
)

__all__ = ["Found", "FoundBundle", "Refusal", "find_bundles"]

DEPTH_CAP = 32
"""How many folders deep a tree is searched for environments."""


def find_bundles(path: Path, *, has_git_modes: bool = False) -> Iterator[Found]:
    """Everything at this path, in order: each environment once, read or refused.

    A folder with a `task.toml` is one environment. Any other folder is searched, archives in it
    included; links to folders are not followed; a folder beside environments that holds none is
    refused. In a git checkout, and with `has_git_modes` in any folder, modes are as git keeps them.
    Never raises on what it finds.
    """
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        yield Refusal(str(path), "", os_reason(error))
        return
    if stat.S_ISDIR(kind):
        yield from _or_nothing(path, _search(path, 0, has_git_modes or _is_in_git(path.resolve())))
    elif stat.S_ISREG(kind):
        yield from find_in_archive(path)
    else:
        yield Refusal(str(path), "", "neither a folder nor an archive")


def _or_nothing(path: Path, found: Iterator[Found]) -> Iterator[Found]:
    """What was found, or one refusal that says that nothing was."""
    is_empty = True
    for item in found:
        is_empty = False
        yield item
    if is_empty:
        yield Refusal(shown(path), "", NOTHING_HERE)


def _is_in_git(folder: Path) -> bool:
    return any((place / ".git").exists() for place in (folder, *folder.parents))


def _search(folder: Path, depth: int, is_git: bool) -> Iterator[Found]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        yield Refusal(shown(folder), "", os_reason(error))
        return
    verdict = folder_verdict(set(names))
    if verdict == "bundle":
        yield _read_folder(folder, is_git or ".git" in names)
    elif verdict:
        yield Refusal(shown(folder), "", verdict)
    elif depth >= DEPTH_CAP:
        yield Refusal(shown(folder), "", f"more than {DEPTH_CAP} folders deep")
    else:
        kept = [folder / name for name in names if name not in PASSED_OVER]
        is_dataset = any(_is_environment(path) for path in kept)
        for path in kept:
            yield from _below(path, depth, is_git or ".git" in names, is_dataset)


def _is_environment(path: Path) -> bool:
    try:
        return (
            path.is_dir() and not path.is_symlink() and bool(folder_verdict(set(os.listdir(path))))
        )
    except OSError:
        return False


def _below(path: Path, depth: int, is_git: bool, is_dataset: bool) -> Iterator[Found]:
    """One entry of a searched folder. Loose files are no environments; a folder beside some is."""
    try:
        kind = path.lstat().st_mode
        is_folder = path.is_dir()
    except OSError as error:
        yield Refusal(shown(path), "", os_reason(error))
        return
    if stat.S_ISLNK(kind):
        if is_folder:
            yield Refusal(shown(path), "", "a link to a folder is not followed; name its target")
    elif is_folder:
        found = _search(path, depth + 1, is_git)
        yield from _or_nothing(path, found) if is_dataset else found
    elif stat.S_ISREG(kind) and path.name.lower().endswith(ARCHIVE_SUFFIXES):
        yield from find_in_archive(path)


def _read_folder(folder: Path, is_git: bool) -> Found:
    try:
        files, notes = read_folder(folder, has_git_modes=is_git)
    except BundleError as error:
        return Refusal(shown(folder), error.path, error.reason)
    except OSError as error:
        return Refusal(shown(folder), "", os_reason(error))
    return judged(shown(folder), folder.resolve().name, files, notes)
