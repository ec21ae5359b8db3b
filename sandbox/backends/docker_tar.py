"""Trees of files as tar archives: written for a container, read from one that nobody trusts."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence

from sandbox.contracts import ArtifactSpec, SandboxFile
from sandbox.errors import Refused, SandboxUnavailable, TooDeep, TooLarge
from sandbox.warden.files import FIXED_TIME, MAX_DEPTH, parts_of
from sandbox.warden.reading import is_excluded

_BLOCK = 512
_NAME_CAP_BYTES = 1 << 20
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
    wanted = [base]
    for file in files:
        parts = plain_parts(file.path)
        wanted.append([*base, *(parts if file.is_folder else parts[:-1])])
    for parts in wanted:
        path = ""
        for part in parts:
            path += f"/{part}"
            found[path] = None
    return list(found)


def write_tar(files: Sequence[SandboxFile], at: str, folders: Sequence[str] = ()) -> bytes:
    """An archive that puts these files under `at`, as root's; the last of the same path wins.

    An empty folder among the files gives its mode to the folder that is there. `folders` (absolute)
    are made first. Raises Refused when a file lies below what is no folder: whoever unpacks it
    might follow a link.
    """
    base = plain_parts(at)
    leaves: set[str] = set()
    total = io.BytesIO()
    with tarfile.open(
        fileobj=total,
        mode="w",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        for folder in folders:
            tar.addfile(_member(folder, SandboxFile(f"{folder}/", mode=0o755)))
        for file in files:
            path = "/" + "/".join([*base, *plain_parts(file.path)])
            if path == "/" or not _folders_above(path, set()).isdisjoint(leaves):
                raise Refused(f"no folder is at the place of {file.path!r}")
            if not file.is_folder:
                leaves.add(path)
            tar.addfile(_member(path, file), io.BytesIO(file.data))
    return total.getvalue()


def _member(path: str, file: SandboxFile) -> tarfile.TarInfo:
    member = tarfile.TarInfo(f".{path}")
    member.mtime = FIXED_TIME
    member.mode = file.mode & 0o1777
    if file.is_folder:
        member.type = tarfile.DIRTYPE
    elif file.link is not None:
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, file.link, 0o777
    else:
        member.size = len(file.data)
    return member


class Collection:
    """What is read of a container: of what was asked for, and no more than is allowed.

    Raises TooLarge past `cap_bytes` of content and for a flood of names, TooDeep for a very deep
    tree.
    """

    def __init__(self, sources: Sequence[ArtifactSpec], cap_bytes: int) -> None:
        self._sources = {"/" + "/".join(plain_parts(spec.source)): spec for spec in sources}
        self._deepest = MAX_DEPTH + 1 + max(map(_depth, self._sources), default=0)
        self._cap_bytes = cap_bytes
        self._room = cap_bytes
        self._found: dict[str, SandboxFile] = {}
        self._folders: dict[str, int] = {}

    def source_of(self, path: str) -> str | None:
        """The source that a path is of; None when nobody asked for it, or it is left out."""
        if _depth(path) > self._deepest:
            raise TooDeep(f"folders are nested more than {MAX_DEPTH} deep")
        for source, spec in self._sources.items():
            head = source.rstrip("/") + "/"
            if path == source or (
                path.startswith(head) and not _is_left_out(path[len(head) :], list(spec.exclude))
            ):
                return source
        return None

    def add_folder(self, path: str, mode: int, source: str) -> None:
        """Take note of a folder, which counts if nothing is in it."""
        if _depth(path) - _depth(source) > MAX_DEPTH:
            raise TooDeep(f"folders are nested more than {MAX_DEPTH} deep")
        if self._sources[source].has_folders:
            self._count(0)
            self._folders[path] = mode & 0o777

    def add_link(self, path: str, target: str) -> None:
        """Take a symbolic link."""
        self._count(0)
        self._found[path] = SandboxFile(path, b"", 0o777, target)

    def announce(self, size: int) -> None:
        """Ask whether a file of this size may come."""
        self._count(size)

    def add_file(self, path: str, mode: int, data: bytes) -> None:
        """Take a regular file that was announced."""
        self._found[path] = SandboxFile(path, data, mode & 0o777)

    def data_at(self, path: str) -> bytes | None:
        """The content of a regular file that was taken."""
        file = self._found.get(path)
        return file.data if file is not None and file.link is None else None

    def files(self) -> tuple[SandboxFile, ...]:
        """All that was taken, in order of path."""
        above: set[str] = set()
        for path in self._found:
            above |= _folders_above(path, above)
        for path in sorted(self._folders, key=lambda path: -path.count("/")):
            if path not in above:
                self._found[f"{path}/"] = SandboxFile(f"{path}/", b"", self._folders[path])
                above |= _folders_above(path, above)
        return tuple(self._found[path] for path in sorted(self._found))

    def _count(self, size: int) -> None:
        self._room -= size
        limit = _FREE_ENTRIES + self._cap_bytes // _ENTRY_BYTES
        if self._room < 0 or len(self._found) + len(self._folders) > limit:
            raise TooLarge(f"more than {self._cap_bytes} bytes would be read")


class TarReader:
    """Reads an archive in GNU's format, fed piece by piece, into a collection.

    Raises what the collection raises, and SandboxUnavailable for what is no such archive.
    """

    def __init__(self, into: Collection) -> None:
        self._into = into
        self._buffer = bytearray()
        self._name: bytes | None = None
        self._link: bytes | None = None
        self._need = _BLOCK
        self._then: Callable[[bytes], None] = self._header
        self._skip = 0
        self.is_begun = self.is_done = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._buffer += data
        self.is_begun |= bool(data)
        at = 0
        while not self.is_done:
            step = min(self._skip, len(self._buffer) - at)
            self._skip -= step
            at += step
            if self._skip or len(self._buffer) - at < self._need:
                break
            block = bytes(self._buffer[at : at + self._need])
            at += self._need
            self._then(block)
        del self._buffer[: len(self._buffer) if self.is_done else at]

    def _header(self, block: bytes) -> None:
        if not any(block):
            self.is_done = True
            return
        size, kind = _number(block[124:136]), block[156:157]
        if kind in (b"L", b"K"):
            if size > _NAME_CAP_BYTES:
                raise TooDeep("a path is longer than is carried")
            self._after(size, self._long_name if kind == b"L" else self._long_link)
            return
        name = self._name if self._name is not None else _text(block[:100])
        link = self._link if self._link is not None else _text(block[157:257])
        self._name = self._link = None
        path = absolute(_decoded(name))
        source = self._into.source_of(path)
        mode = _number(block[100:108])
        self._skip = _padded(size)
        if source is None:
            return
        if kind == b"5":
            self._into.add_folder(path, mode, source)
        elif kind == b"2":
            self._into.add_link(path, _decoded(link))
        elif kind in (b"0", b"\0", b"7"):
            self._into.announce(size)
            self._after(size, lambda data: self._into.add_file(path, mode, data))

    def _after(self, size: int, then: Callable[[bytes], None]) -> None:
        """Wait for so many bytes, hand them on, pass over the padding, expect a header."""

        def done(block: bytes) -> None:
            self._need, self._then = _BLOCK, self._header
            self._skip = _padded(size) - size
            then(block)

        self._skip = 0
        self._need, self._then = size, done

    def _long_name(self, data: bytes) -> None:
        self._name = data.rstrip(b"\0")

    def _long_link(self, data: bytes) -> None:
        self._link = data.rstrip(b"\0")


def _depth(path: str) -> int:
    return path.rstrip("/").count("/")


def _folders_above(path: str, known: set[str]) -> set[str]:
    """Every folder above a path that is not known yet."""
    found: set[str] = set()
    parent = path.rstrip("/").rpartition("/")[0]
    while parent and parent not in known:
        found.add(parent)
        parent = parent.rpartition("/")[0]
    return found


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


def absolute(name: str) -> str:
    """The path that an archive's name means. Raises SandboxUnavailable when it leaves the root."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise SandboxUnavailable("a path in the container's archive leaves its folder")
    return "/" + "/".join(parts)


def _number(field: bytes) -> int:
    """A number of a header: octal digits, or base 256 when its first bit is set."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
        return min(value, 1 << 62)
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):  # Python would take signs and underscores as well
        raise SandboxUnavailable("the container's archive makes no sense")
    return int(digits or b"0", 8)
