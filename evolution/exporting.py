"""A frozen dataset as files that trainers load: plain values in, deterministic bytes out.

The same dataset gives the same bytes, whenever and wherever it is exported. Environments are
fetched and written one at a time; none is held longer than it takes to write it.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from evolution.bundle import Bundle, BundleError
from evolution.config_reader import TASK_NAME
from evolution.export_card import card
from evolution.export_values import ExportedEnvironment, FrozenDataset
from evolution.folders import read_folder
from evolution.paths import path_problem
from evolution.tar_stream import tar_gz
from evolution.validation import canaries
from sandbox.contracts import SandboxFile

__all__ = [
    "ExportedEnvironment",
    "FrozenDataset",
    "export_archive",
    "export_files",
    "verify_export",
]

TASKS = "tasks"
"""The folder of an export that holds the environments, one folder each."""
MANIFEST_FORMAT = "ratchet-dataset/1"

LoadBundle = Callable[[str], Bundle]
"""Gives the bundle of an environment's digest."""


def export_archive(dataset: FrozenDataset, load: LoadBundle) -> Iterator[bytes]:
    """The dataset as a `.tar.gz`, in chunks; everything lies in one folder `slug-vN`.

    Raises BundleError when a bundle is not the one that was frozen.
    """
    return tar_gz(
        SandboxFile(f"{dataset.folder}/{file.path}", file.data, file.mode, file.link)
        for file in export_files(dataset, load)
    )


def export_files(dataset: FrozenDataset, load: LoadBundle) -> Iterator[SandboxFile]:
    """The files of an export, one after another, the checksums of all others last.

    Raises BundleError when a bundle is not the one that was frozen, or a folder name is not fit.
    """
    _check_folders(dataset)
    sums: list[tuple[str, str]] = []
    marked: dict[str, tuple[str, ...]] = {}
    for environment in dataset.environments:
        bundle = _frozen(environment, load)
        marked[environment.folder] = canaries(bundle)
        for file in bundle.files:
            placed = SandboxFile(
                f"{TASKS}/{environment.folder}/{file.path}", file.data, file.mode, file.link
            )
            yield _counted(placed, sums)
    texts = {
        "README.md": card(dataset, marked),
        "dataset.toml": _dataset_toml(dataset),
        "registry.json": _registry_json(dataset),
        "manifest.json": _manifest_json(dataset, marked),
    }
    for path, text in texts.items():
        yield _counted(SandboxFile(path, text.encode()), sums)
    lines = "".join(f"{digest}  {path}\n" for path, digest in sorted(sums))
    yield SandboxFile("checksums.sha256", lines.encode())


def _check_folders(dataset: FrozenDataset) -> None:
    seen: set[str] = set()
    for environment in dataset.environments:
        folder = environment.folder
        reason = path_problem(folder) or ("has a slash" if "/" in folder else None)
        if reason is not None or folder.casefold() in seen:
            raise BundleError(folder, f"no folder name for an export: {reason or 'taken twice'}")
        seen.add(folder.casefold())


def _frozen(environment: ExportedEnvironment, load: LoadBundle) -> Bundle:
    bundle = load(environment.digest)
    if bundle.digest != environment.digest:
        raise BundleError(environment.folder, "its files are not the ones that were frozen")
    if bundle.harbor_digest != environment.harbor_digest:
        raise BundleError(environment.folder, "its Harbor digest is not the one that was frozen")
    return bundle


def _counted(file: SandboxFile, sums: list[tuple[str, str]]) -> SandboxFile:
    """Note a file's checksum. Links have none: their targets do, and our digest covers both."""
    if file.link is None:
        sums.append((file.path, hashlib.sha256(file.data).hexdigest()))
    return file


def _dataset_toml(dataset: FrozenDataset) -> str:
    """Harbor's dataset manifest: each task by name and content digest."""
    head = {
        "name": dataset.harbor_name,
        "version": dataset.version,
        "description": dataset.description,
    }
    lines = ['schema_version = "1.0"', "", "[dataset]"]
    lines += [f"{key} = {_toml_string(value)}" for key, value in head.items()]
    for environment in dataset.environments:
        name = environment.task_name
        if not TASK_NAME.match(name) or ".." in name:  # Harbor takes no other form
            name = f"{dataset.organisation}/{environment.folder}"
        lines += ["", "[[tasks]]", f"name = {_toml_string(name)}"]
        lines.append(f'digest = "sha256:{environment.harbor_digest}"')
    return "\n".join(lines) + "\n"


def _toml_string(text: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for what JSON leaves bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _registry_json(dataset: FrozenDataset) -> str:
    """Harbor's registry file, with paths below the export's folder."""
    tasks = [
        {"name": environment.folder, "path": f"{TASKS}/{environment.folder}"}
        for environment in dataset.environments
    ]
    return _json(
        [
            {
                "name": dataset.slug,
                "version": dataset.version,
                "description": dataset.description,
                "tasks": tasks,
                "metrics": [{"type": "mean"}],
            }
        ]
    )


def _manifest_json(dataset: FrozenDataset, marked: Mapping[str, tuple[str, ...]]) -> str:
    """Everything that is known of each environment, for programs."""
    environments = [
        {
            **asdict(environment),
            "path": f"{TASKS}/{environment.folder}",
            "canaries": list(marked[environment.folder]),
        }
        for environment in dataset.environments
    ]
    return _json(
        {
            "format": MANIFEST_FORMAT,
            "name": dataset.name,
            "slug": dataset.slug,
            "version": dataset.version,
            "frozen_at": dataset.frozen_at,
            "digest": dataset.digest,
            "description": dataset.description,
            "verdicts": dataset.basis,
            "environments": environments,
        }
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True, allow_nan=False) + "\n"


@dataclass(slots=True)
class _Found:
    """What an export's folder really holds, against what its own lists say."""

    problems: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)


def verify_export(folder: Path) -> tuple[str, ...]:
    """What is wrong with an unpacked export, by its own lists: one line each, empty when whole.

    Finds every flipped byte, changed mode or link, and every missing or added file. Raises OSError
    when the folder cannot be read.
    """
    found = _Found()
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        environments = [(str(e["path"]), str(e["digest"])) for e in manifest["environments"]]
        sums = (folder / "checksums.sha256").read_text("utf-8").rstrip("\n").split("\n")
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        return (f"manifest.json or checksums.sha256 cannot be read: {error}",)
    for line in sums:
        digest, _, path = line.partition("  ")
        _verify_file(folder, path, digest, found)
    for path, digest in environments:
        _verify_environment(folder, path, digest, found)
    actual = {
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink() or p.is_file()
    }
    expected = found.known | {"checksums.sha256"}
    found.problems += [f"{path}: not part of this export" for path in sorted(actual - expected)]
    return tuple(found.problems)


def _verify_file(folder: Path, path: str, digest: str, found: _Found) -> None:
    found.known.add(path)
    if path_problem(path) is not None:
        found.problems.append(f"{path}: no path of an export")
    elif not (folder / path).is_file() or (folder / path).is_symlink():
        found.problems.append(f"{path}: missing")
    elif hashlib.sha256((folder / path).read_bytes()).hexdigest() != digest:
        found.problems.append(f"{path}: changed")


def _verify_environment(folder: Path, path: str, digest: str, found: _Found) -> None:
    """An environment's digest covers modes and links too, which checksums do not."""
    if path_problem(path) is not None or not (folder / path).is_dir():
        found.problems.append(f"{path}: missing")
        return
    try:
        bundle = Bundle.of(read_folder(folder / path)[0])
    except BundleError as error:
        found.problems.append(f"{path}: {error}")
        return
    links = (posixpath.join(path, file.path) for file in bundle.files if file.link is not None)
    found.known.update(links)
    if bundle.digest != digest:
        found.problems.append(f"{path}: not the environment that was frozen")
