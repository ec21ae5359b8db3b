"""The environments of an archive, found by the same rules as in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from evolution.archives import ArchiveTree, archive_kind, read_archive
from evolution.bundle import BundleError
from evolution.found import (
    ARCHIVE_SUFFIXES,
    NOTHING_HERE,
    PASSED_OVER,
    Found,
    Refusal,
    folder_verdict,
    judged,
    os_reason,
    shown,
)
from evolution.task_config import Problem, Severity
from sandbox.contracts import SandboxFile


def find_in_archive(path: Path) -> Iterator[Found]:
    """Everything in an archive, in order; one refusal when it cannot be read at all."""
    try:
        if archive_kind(path) is None:
            yield Refusal(shown(path), "", "not an archive read here (zip, tar, tar.gz, tar.zst)")
            return
        tree = read_archive(path)
    except BundleError as error:
        yield Refusal(shown(path), error.path, error.reason)
        return
    except OSError as error:
        yield Refusal(shown(path), "", os_reason(error))
        return
    found = list(_search(tree, path))
    yield from found
    if not found:
        yield Refusal(shown(path), "", NOTHING_HERE)


def _search(tree: ArchiveTree, archive: Path) -> Iterator[Found]:
    stem = archive.name.split(".")[0] or archive.name
    roots = _roots(tree)
    files, folders = _by_root(tree.files, roots), _by_root(tree.folders, roots)
    refused = _by_root(tree.refused, roots)
    for root, verdict in roots.items():
        origin = f"{shown(archive)}!/{root}"
        bad = refused.get(root, [])
        if verdict != "bundle":
            yield Refusal(origin, "", verdict)
        elif bad:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            yield Refusal(origin, bad[0][1], tree.refused[bad[0][0]] + more)
        else:
            own = tuple(replace(tree.files[path], path=rest) for path, rest in files.get(root, ()))
            notes = _empty_folders(own, [rest for _, rest in folders.get(root, ())])
            yield judged(origin, root.rsplit("/", 1)[-1] or stem, own, notes)
    yield from _loose(tree, archive, roots)


def _root_of(path: str, roots: Mapping[str, str]) -> str | None:
    return next((r for r in (*sorted(_parents(path)), path) if r in roots), None)


def _by_root(paths: Iterable[str], roots: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """Paths by the environment that they belong to, each with its path in there; no `.git`."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(paths):
        root = _root_of(path, roots)
        rest = path[len(root) :].lstrip("/") if root is not None else ""
        if root is not None and rest and rest.split("/")[0] != ".git":
            found.setdefault(root, []).append((path, rest))
    return found


def _empty_folders(files: tuple[SandboxFile, ...], folders: list[str]) -> tuple[Problem, ...]:
    filled = {parent for file in files for parent in _parents(file.path)}
    return tuple(
        Problem(folder, "an empty folder is not kept", Severity.WARNING)
        for folder in folders
        if folder not in filled and not any(f.startswith(f"{folder}/") for f in folders)
    )


def _loose(tree: ArchiveTree, archive: Path, roots: Mapping[str, str]) -> Iterator[Found]:
    """What is outside every environment, and still must be answered for."""
    for path, reason in sorted(tree.refused.items()):
        if _root_of(path, roots) is None:
            yield Refusal(shown(archive), path, reason)
    for path in tree.files:
        if path.lower().endswith(ARCHIVE_SUFFIXES) and _root_of(path, roots) is None:
            origin = f"{shown(archive)}!/{path}"
            yield Refusal(origin, "", "an archive inside an archive is not opened")


def _roots(tree: ArchiveTree) -> dict[str, str]:
    """The outermost folders that are, or look like, environments; with what each one is."""
    names: dict[str, set[str]] = {"": set()}
    for path in (*tree.files, *tree.folders, *tree.refused):
        parts = path.split("/")
        for count in range(len(parts)):
            names.setdefault("/".join(parts[:count]), set()).add(parts[count])
    for folder in tree.folders:
        names.setdefault(folder, set())
    found: dict[str, str] = {}
    above: set[str] = set()
    for folder in sorted(names, key=lambda folder: folder.split("/")):
        parents = _parents(folder)
        if found.keys() & parents or set(PASSED_OVER).intersection(folder.split("/")):
            continue
        verdict = folder_verdict(names[folder])
        if verdict:
            found[folder] = verdict
            above |= parents
    beside = {root.rpartition("/")[0] for root in found if root}
    for folder in names:
        is_new = folder not in found and folder not in above and not found.keys() & _parents(folder)
        is_passed = folder.rpartition("/")[2] in PASSED_OVER
        if folder and is_new and not is_passed and folder.rpartition("/")[0] in beside:
            found[folder] = NOTHING_HERE
    return dict(sorted(found.items()))


def _parents(folder: str) -> set[str]:
    parts = folder.split("/") if folder else []
    return {"/".join(parts[:count]) for count in range(len(parts))}
