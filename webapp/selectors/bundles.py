"""Reading an environment's files without loading the whole bundle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evolution.tar_stream import tar_gz
from webapp.models import Blob, Environment
from webapp.presentation.diffs import FileEntry
from webapp.store import load_blobs, load_bundle

FILE_CAP_BYTES = 1_000_000
"""Larger files are offered for download and not shown."""


def manifest(environment: Environment) -> tuple[FileEntry, ...]:
    """The files of an environment, in order of path."""
    return tuple(
        FileEntry(str(path), int(mode), str(digest), int(size), link)
        for path, mode, digest, size, link in environment.manifest
    )


def read_shown(entries: Iterable[FileEntry]) -> dict[str, bytes]:
    """Contents by digest of what is small enough to be shown."""
    wanted = {e.digest for e in entries if e.link is None and e.size_bytes <= FILE_CAP_BYTES}
    rows = Blob.objects.filter(digest__in=wanted).values_list("digest", "data")
    return {digest: bytes(data) for digest, data in rows}


def read_file(environment: Environment, path: str) -> bytes | None:
    """One file's content, checked against its digest; None when there is no such file."""
    for entry in manifest(environment):
        if entry.path == path and entry.link is None:
            return load_blobs([entry.digest])[entry.digest]
    return None


def archive(environment: Environment, folder: str) -> bytes:
    """The bundle as a `.tar.gz` with one Harbor folder; the same bytes every time."""
    files = load_bundle(environment).files
    return b"".join(tar_gz(replace(file, path=f"{folder}/{file.path}") for file in files))


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One line of a file tree: a folder (no entry) or a file."""

    name: str
    depth: int
    entry: FileEntry | None


def file_tree(entries: Iterable[FileEntry]) -> tuple[TreeRow, ...]:
    """Files under their folders, as indented rows; top-level files come first."""
    rows: list[TreeRow] = []
    shown: tuple[str, ...] = ()
    for entry in sorted(entries, key=lambda e: ("/" in e.path, e.path)):
        *folders, name = entry.path.split("/")
        for depth, folder in enumerate(folders):
            if shown[: depth + 1] != tuple(folders[: depth + 1]):
                rows.append(TreeRow(folder, depth, None))
        shown = tuple(folders)
        rows.append(TreeRow(name, len(folders), entry))
    return tuple(rows)
