"""Bundles to disk: exact bytes, modes and links, all or nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from evolution.bundle import Bundle, BundleError
from evolution.paths import tree_problems
from sandbox.contracts import SandboxFile


def write_bundle(bundle: Bundle, folder: Path) -> None:
    """Write a bundle as a new folder. It appears complete under its name, or not at all.

    Raises FileExistsError when something is there already, BundleError when a path or link of the
    bundle is not sound, OSError when the disk refuses.
    """
    for path, reason in tree_problems(bundle.files).items():
        raise BundleError(path, reason)
    write_tree(bundle.files, folder)


def write_tree(files: Iterable[SandboxFile], folder: Path) -> None:
    """Write files as a new folder, one after another. It appears complete, or not at all.

    Raises FileExistsError when something is there already, OSError when the disk refuses.
    """
    if os.path.lexists(folder):
        raise FileExistsError(f"{folder}: is there already; remove it or choose another name")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name[:32]}.", dir=folder.parent))
    try:
        _write_files(files, partial)
        partial.chmod(0o755)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_files(files: Iterable[SandboxFile], root: Path) -> None:
    """Regular files first, links last: no file is ever written through a link."""
    links = []
    for file in files:
        place = root / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.link is not None:
            links.append((place, file.link))
            continue
        place.write_bytes(file.data)
        place.chmod(file.mode)
    for place, target in links:
        place.symlink_to(target)
