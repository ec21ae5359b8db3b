"""Bundles: the files of an environment in Harbor's layout, immutable, with their digests.

Beside this: `validation` judges bundles, `reading` and `writing` carry them from and to disk,
`execution` says how they are run, `task_config` what their `task.toml` means.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, MutableMapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from evolution.harbor import harbor_digest, strip_canary
from evolution.tree import Tree
from sandbox.contracts import SandboxFile, tree_digest

_STEP_INSTRUCTION = re.compile(r"steps/[^/]+/instruction\.md")
CONFIG_CAP = 1_000_000
"""The longest `task.toml` that is read, in characters."""


class BundleError(Exception):
    """A bundle that cannot be accepted. `path` is where, `reason` one line: what, what to do."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True)
class Bundle:
    """An environment's files, sorted by path; equal files, modes and links mean equal bundles."""

    files: tuple[SandboxFile, ...]

    @classmethod
    def of(cls, files: Iterable[SandboxFile]) -> Bundle:
        """A bundle of these files, whatever their order. Raises BundleError on a path twice.

        A link has no mode of its own, so that all links get the one that Unix shows.
        """
        ordered = tuple(sorted(map(_with_link_mode, files), key=lambda file: file.path))
        for one, two in pairwise(ordered):
            if one.path == two.path:
                raise BundleError(one.path, "this path is there twice")
        return cls(ordered)

    @cached_property
    def by_path(self) -> Mapping[str, SandboxFile]:
        """The files by path."""
        return MappingProxyType({file.path: file for file in self.files})

    @cached_property
    def digest(self) -> str:
        """Our digest: SHA-256 in hex over paths, modes, links and contents of all files."""
        return tree_digest(self.files)

    def text(self, path: str) -> str:
        """A file's content as UTF-8, links followed, as whoever runs the bundle will read it.

        Raises BundleError when it is missing, leads to no file or is no UTF-8.
        """
        file = self._file(path)
        try:
            return file.data.decode()
        except UnicodeDecodeError as error:
            raise BundleError(path, f"not UTF-8 (byte {error.start})") from None

    def _file(self, path: str) -> SandboxFile:
        file = self.by_path.get(path)
        if file is None:
            raise BundleError(path, "missing")
        if file.link is not None:
            file = Tree(self.files).file(path)
        if file is None:
            raise BundleError(path, "a link that leads to no file")
        return file

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """`task.toml`, parsed. Raises BundleError when it is missing or broken."""
        text = self.text("task.toml")
        if len(text) > CONFIG_CAP:
            raise BundleError("task.toml", f"longer than {CONFIG_CAP:,} characters")
        try:
            return MappingProxyType(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise BundleError("task.toml", f"not valid TOML: {error}") from None
        except RecursionError:
            raise BundleError("task.toml", "nested too deeply") from None

    @cached_property
    def harbor_digest(self) -> str:
        """Harbor's content digest in hex; see `harbor.harbor_digest` for what it does not cover."""
        try:
            return harbor_digest(self.files)
        except UnicodeDecodeError:
            raise BundleError(".gitignore", "an ignore file is not UTF-8") from None

    @property
    def instruction(self) -> str:
        """The text of `instruction.md`, canary lines included; of all steps where there is none."""
        if "instruction.md" in self.by_path:
            return self.text("instruction.md")
        steps = [path for path in self.by_path if _STEP_INSTRUCTION.fullmatch(path)]
        if not steps:
            return self.text("instruction.md")
        return "\n\n".join(f"## {path.split('/')[1]}\n\n{self.text(path)}" for path in steps)

    @property
    def displayed_instruction(self) -> str:
        """What the solver is told: the instruction without canary lines, as Harbor gives it."""
        return strip_canary(self.instruction)

    def folder(self, name: str) -> tuple[SandboxFile, ...]:
        """The files below a top folder, with paths relative to it."""
        head = f"{name}/"
        return tuple(
            SandboxFile(f.path[len(head) :], f.data, f.mode, f.link)
            for f in self.files
            if f.path.startswith(head)
        )

    def with_files(self, files: Iterable[SandboxFile], remove: Iterable[str] = ()) -> Bundle:
        """A bundle with these files put in or replaced, and the paths of `remove` gone."""
        merged = dict(self.by_path)
        for path in remove:
            merged.pop(path, None)
        merged.update({file.path: file for file in files})
        return Bundle.of(merged.values())


def _with_link_mode(file: SandboxFile) -> SandboxFile:
    is_plain = file.link is None or file.mode == 0o777
    return file if is_plain else replace(file, mode=0o777)


def content_digest(data: bytes) -> str:
    """SHA-256 of some bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def with_config(bundle: Bundle, changes: Mapping[tuple[str, ...], Any]) -> Bundle:
    """A bundle with these keys of `task.toml` set, all else of its text unchanged.

    Keys are paths into the tables, `("metadata", "ratchet", "generation")`; missing tables are
    made; the value None removes a key. Raises BundleError when the file is broken, or when a key's
    path runs through something that is no table.
    """
    wanted = deepcopy(dict(bundle.config))
    try:
        document = tomlkit.parse(bundle.text("task.toml"))
        for path, value in changes.items():
            _set(document, path, value)
            _set(wanted, path, value)
        text = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise BundleError("task.toml", f"not valid TOML: {error}") from None
    mode = bundle._file("task.toml").mode
    edited = bundle.with_files([SandboxFile("task.toml", text.encode(), mode)])
    if dict(edited.config) != wanted:  # the edit must mean what was asked, whatever the file's form
        raise BundleError("task.toml", f"cannot be edited at {'.'.join(next(iter(changes)))}")
    return edited


def _set(table: MutableMapping[str, Any], path: tuple[str, ...], value: object) -> None:
    """Set or remove one key, in a document or in plain tables."""
    for depth, key in enumerate(path[:-1]):
        if key not in table:
            if value is None:
                return
            is_plain = isinstance(table, dict) and not isinstance(table, Container | Table)
            table[key] = {} if is_plain else tomlkit.table(is_super_table=depth < len(path) - 2)
        inner = table[key]
        if not isinstance(inner, MutableMapping):
            raise BundleError("task.toml", f"{'.'.join(path[: depth + 1])} is no table")
        table = inner
    if value is None:
        table.pop(path[-1], None)
    else:
        table[path[-1]] = value
