"""A set of files seen as a file system: folders, and where links lead."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable

from sandbox.contracts import SandboxFile

_LINK_CAP = 40


class Tree:
    """A bundle's files as a file system with links."""

    def __init__(self, files: Iterable[SandboxFile]) -> None:
        self._files = {file.path: file for file in files}
        self._children: dict[str, set[str]] = defaultdict(set)
        for path in self._files:
            place = path
            while place:
                parent, name = posixpath.split(place)
                self._children[parent].add(name)
                place = parent

    def resolve(self, path: str) -> str | None:
        """Where a path leads when all links are followed; None when outside or in a loop."""
        done: list[str] = []
        todo = path.split("/")[::-1] if path else []
        followed = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    return None
                done.pop()
                continue
            done.append(part)
            file = self._files.get("/".join(done))
            if file is None or file.link is None:
                continue
            followed += 1
            if followed > _LINK_CAP or file.link.startswith("/"):
                return None
            done.pop()
            todo.extend(file.link.split("/")[::-1])
        return "/".join(done)

    def file(self, path: str) -> SandboxFile | None:
        """The regular file that a path leads to, if it leads to one."""
        place = self.resolve(path)
        return None if place is None else self._files.get(place)

    def is_link(self, path: str) -> bool:
        """Whether the path itself is a link."""
        file = self._files.get(path)
        return file is not None and file.link is not None

    def is_folder(self, path: str) -> bool:
        """Whether a path leads to a folder."""
        place = self.resolve(path)
        return place is not None and place in self._children

    def names(self, path: str) -> list[str]:
        """The names in the folder that a path leads to, sorted."""
        place = self.resolve(path)
        return sorted(self._children.get(place, ())) if place is not None else []
