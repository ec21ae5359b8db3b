"""Bundles: the files of an environment in Harbor's layout, immutable, with their digests."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from sandbox.contracts import SandboxFile, tree_digest


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
        """A bundle of these files, whatever their order. Raises BundleError on a path given twice."""
        ordered = tuple(sorted(files))
        for one, two in zip(ordered, ordered[1:], strict=False):
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
        """A file's content as UTF-8. Raises BundleError when it is missing or is no UTF-8."""
        file = self.by_path.get(path)
        if file is None:
            raise BundleError(path, "missing")
        try:
            return file.data.decode()
        except UnicodeDecodeError as error:
            raise BundleError(path, f"not UTF-8 (byte {error.start})") from None

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """`task.toml`, parsed. Raises BundleError when it is missing or broken."""
        try:
            return MappingProxyType(tomllib.loads(self.text("task.toml")))
        except tomllib.TOMLDecodeError as error:
            raise BundleError("task.toml", f"not valid TOML: {error}") from None

    @property
    def instruction(self) -> str:
        """What the solver is told (`instruction.md`)."""
        return self.text("instruction.md")

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


def content_digest(data: bytes) -> str:
    """SHA-256 of some bytes, in hex."""
    return hashlib.sha256(data).hexdigest()
