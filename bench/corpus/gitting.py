"""Git repositories made in memory: loose objects and packs, without git."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable

_WHO = "Ada Example <ada@corpus.example>"
_KINDS = {"commit": 1, "tree": 2, "blob": 3}


class Repository:
    """A bare repository that grows; `files` gives it as files."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, bytes]] = {}
        self.refs: dict[str, str] = {}

    def add(self, kind: str, content: bytes) -> str:
        """Keep an object; its name."""
        name = hashlib.sha1(
            f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False
        ).hexdigest()
        self.objects[name] = (kind, content)
        return name

    def commit(
        self, files: dict[str, bytes], message: str, at: int, parent: str = "", who: str = _WHO
    ) -> str:
        """A commit of these files (names without folders), seconds since 1970 in UTC; its name."""
        entries = b"".join(
            f"100644 {name}\0".encode() + bytes.fromhex(self.add("blob", data))
            for name, data in sorted(files.items())
        )
        lines = [f"tree {self.add('tree', entries)}", *([f"parent {parent}"] if parent else [])]
        lines += [f"author {who} {at} +0000", f"committer {who} {at} +0000", "", message, ""]
        return self.add("commit", "\n".join(lines).encode())

    def files(self, *, packed: Iterable[str] = ()) -> dict[str, bytes]:
        """The files of the repository by path; the objects of `packed` lie in one pack."""
        names = tuple(packed)
        found = {
            "HEAD": b"ref: refs/heads/main\n",
            "config": b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
            **{ref: f"{name}\n".encode() for ref, name in self.refs.items()},
        }
        for name, (kind, content) in self.objects.items():
            if name not in names:
                whole = f"{kind} {len(content)}\0".encode() + content
                found[f"objects/{name[:2]}/{name[2:]}"] = zlib.compress(whole)
        if names:
            found["objects/pack/pack-1.pack"] = self._pack(names)
        return found

    def _pack(self, names: tuple[str, ...]) -> bytes:
        body = b"PACK" + (2).to_bytes(4, "big") + len(names).to_bytes(4, "big")
        for name in names:
            kind, content = self.objects[name]
            size = len(content)
            head = [_KINDS[kind] << 4 | size & 15]
            size >>= 4
            while size:
                head[-1] |= 0x80
                head.append(size & 0x7F)
                size >>= 7
            body += bytes(head) + zlib.compress(content)
        return body + hashlib.sha1(body, usedforsecurity=False).digest()
