"""The environments of an archive, found by the same rules as in a folder."""

from __future__ import annotations

from collections.abc import Iterator
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


def find_in_archive(path: Path) -> Iterator[Found]:
    try:
        if archive_kind(path) is None:
            yield Refusal(str(path), "", "no archive that is read here (zip, tar, tar.gz, tar.zst)")
            return
        tree = read_archive(path)
    except BundleError as error:
        yield Refusal(str(path), error.path, error.reason)
        return
    except OSError as error:
        yield Refusal(str(path), "", os_reason(error))
        return
    found = list(_search_archive(tree, path))
    yield from found
    if not found:
        yield Refusal(str(path), "", NOTHING_HERE)


def _search_archive(tree: ArchiveTree, archive: Path) -> Iterator[Found]:
    """The environments of an archive, by the same rules as in a folder."""
    stem = archive.name.split(".")[0] or archive.name
    roots = _roots(tree)
    for root, verdict in roots.items():
        origin = f"{shown(archive)}!/{root}"
        head = f"{root}/" if root else ""
        bad = sorted(
            (path[len(head) :], reason)
            for path, reason in tree.refused.items()
            if _is_below(path, root) and not path.startswith(f"{head}.git/")
        )
        if verdict != "bundle":
            yield Refusal(origin, "", verdict)
        elif bad:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            yield Refusal(origin, bad[0][0], bad[0][1] + more)
        else:
            files = tuple(
                replace(file, path=path[len(head) :])
                for path, file in tree.files.items()
                if path.startswith(head) and not path.startswith(f"{head}.git/")
            )
            yield judged(origin, root.rsplit("/", 1)[-1] or stem, files)
    yield from _loose(tree, archive, tuple(roots))


def _loose(tree: ArchiveTree, archive: Path, roots: tuple[str, ...]) -> Iterator[Found]:
    """What is outside every environment, and still must be answered for."""
    for path, reason in sorted(tree.refused.items()):
        if not any(_is_below(path, root) for root in roots):
            yield Refusal(shown(archive), path, reason)
    for path in tree.files:
        if path.lower().endswith(ARCHIVE_SUFFIXES) and not any(
            _is_below(path, root) for root in roots
        ):
            yield Refusal(f"{archive}!/{path}", "", "an archive inside an archive is not opened")


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


def _is_below(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(f"{root}/")
