"""Trees of files as tar archives: written for a container, read from one that nobody trusts."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Sequence

from sandbox.contracts import ArtifactSpec, SandboxFile
from sandbox.errors import Refused, SandboxUnavailable, TooLarge
from sandbox.warden.files import FIXED_TIME, MAX_DEPTH, parts_of
from sandbox.warden.reading import is_excluded

_BLOCK = 512
_NAME_CAP_BYTES = 1 << 17
_ENTRY_BYTES = 256
_FREE_ENTRIES = 4096


def plain_parts(path: str) -> list[str]:
    """The parts of a path. Raises Refused when it is not a plain one."""
    try:
        return parts_of(path)
    except ValueError as error:
        raise Refused(str(error)) from None


def folders_of(files: Sequence[SandboxFile], at: str) -> list[str]:
    """Every folder that must be there before these files are put under `at`, parents first."""
    base = plain_parts(at)
    found: dict[str, None] = {}
    for parts in [base, *([*base, *plain_parts(file.path)[:-1]] for file in files)]:
        path = ""
        for part in parts:
            path += f"/{part}"
            found[path] = None
    return list(found)


def write_tar(files: Sequence[SandboxFile], at: str, *, owner: tuple[int, int] = (0, 0)) -> bytes:
    """An archive that puts these files under `at`, the last of those with the same path winning."""
    base = plain_parts(at)
    total = io.BytesIO()
    with tarfile.open(
        fileobj=total,
        mode="w",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        for file in files:
            parts = [*base, *plain_parts(file.path)]
            if not parts:
                raise Refused(f"not the path of a file: {file.path!r}")
            member = tarfile.TarInfo("./" + "/".join(parts))
            member.mtime = FIXED_TIME
            member.uid, member.gid = owner
            if file.link is not None:
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, file.link, 0o777
                tar.addfile(member)
                continue
            member.size, member.mode = len(file.data), file.mode & 0o1777
            tar.addfile(member, io.BytesIO(file.data))
    return total.getvalue()


class TarReader:
    """Regular files and links of an archive in GNU's format, fed piece by piece.

    `sources` decide what is left out; whatever else the archive holds is passed over. Raises
    TooLarge past `cap_bytes` of content, or for a flood of names or a very deep tree.
    """

    def __init__(self, sources: Iterable[ArtifactSpec], cap_bytes: int) -> None:
        self._excludes = {
            "/" + "/".join(plain_parts(source.source)): list(source.exclude) for source in sources
        }
        self._cap_bytes = cap_bytes
        self._room = cap_bytes
        self._buffer = bytearray()
        self._name: bytes | None = None
        self._link: bytes | None = None
        self._need = _BLOCK
        self._then: Callable[[bytes], None] = self._header
        self._skip = 0
        self._is_done = False
        self._found: dict[str, SandboxFile] = {}

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._buffer += data
        at = 0
        while not self._is_done:
            if self._skip:
                step = min(self._skip, len(self._buffer) - at)
                self._skip -= step
                at += step
                if self._skip:
                    break
            if len(self._buffer) - at < self._need:
                break
            block = bytes(self._buffer[at : at + self._need])
            at += self._need
            self._then(block)
        del self._buffer[:at]
        if self._is_done:
            self._buffer.clear()

    def files(self) -> tuple[SandboxFile, ...]:
        """All that was read, in order of path. Raises SandboxUnavailable for half an archive."""
        is_empty = not self._buffer and not self._found
        if not self._is_done and not (is_empty and self._then == self._header):
            raise SandboxUnavailable("the container's files could not be read to their end")
        return tuple(self._found[path] for path in sorted(self._found))

    def _header(self, block: bytes) -> None:
        if not any(block):
            self._is_done = True
            return
        size = _number(block[124:136])
        kind = block[156:157]
        if kind in (b"L", b"K"):
            if size > _NAME_CAP_BYTES:
                raise TooLarge("a name in the archive is longer than any path")
            self._after(size, self._long_name if kind == b"L" else self._long_link)
            return
        name = self._name if self._name is not None else _text(block[:100])
        link = self._link if self._link is not None else _text(block[157:257])
        self._name = self._link = None
        path = _absolute(name)
        if path.count("/") > MAX_DEPTH + 1:
            raise TooLarge(f"folders are nested more than {MAX_DEPTH} deep")
        if kind == b"2":
            if self._is_wanted(path):
                self._count(0)
                self._found[path] = SandboxFile(path, b"", 0o777, _decoded(link))
            return
        if kind not in (b"0", b"\0", b"7"):
            self._skip = _padded(size)
            return
        if not self._is_wanted(path):
            self._skip = _padded(size)
            return
        self._count(size)
        mode = _number(block[100:108]) & 0o777
        if not size:
            self._found[path] = SandboxFile(path, b"", mode)
            return

        def content(data: bytes) -> None:
            self._found[path] = SandboxFile(path, data, mode)

        self._after(size, content)

    def _after(self, size: int, then: Callable[[bytes], None]) -> None:
        """Wait for so many bytes, hand them on, pass over the padding, expect a header."""

        def done(block: bytes) -> None:
            self._need, self._then = _BLOCK, self._header
            self._skip = _padded(size) - size
            then(block)

        self._need, self._then = size, done

    def _long_name(self, data: bytes) -> None:
        self._name = data.rstrip(b"\0")

    def _long_link(self, data: bytes) -> None:
        self._link = data.rstrip(b"\0")

    def _is_wanted(self, path: str) -> bool:
        for source, patterns in self._excludes.items():
            if path == source:
                return True
            head = source.rstrip("/") + "/"
            if path.startswith(head) and not _is_left_out(path[len(head) :], patterns):
                return True
        return False

    def _count(self, size: int) -> None:
        self._room -= size
        limit = _FREE_ENTRIES + self._cap_bytes // _ENTRY_BYTES
        if self._room < 0 or len(self._found) > limit:
            raise TooLarge(f"more than {self._cap_bytes} bytes would be read")


def _is_left_out(path: str, patterns: list[str]) -> bool:
    """Whether a path, or a folder that it is in, matches."""
    if not patterns:
        return False
    parts = path.split("/")
    heads = ("/".join(parts[: n + 1]) for n in range(len(parts)))
    return any(is_excluded(head, patterns) for head in heads)


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _text(data: bytes) -> bytes:
    return data.partition(b"\0")[0]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _absolute(name: bytes) -> str:
    parts = [part for part in _decoded(name).split("/") if part not in ("", ".")]
    if ".." in parts:
        raise SandboxUnavailable("a path in the container's archive leaves its folder")
    return "/" + "/".join(parts)


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or base 256 when its first bit is set."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
        return min(value, 1 << 62)
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        raise SandboxUnavailable("the container's archive makes no sense") from None
