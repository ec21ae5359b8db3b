"""Archives that nobody trusts, read into memory: zip, tar, tar.gz, tar.zst.

Nothing is ever extracted by an archive's own paths. What is hostile to whoever opens it (absolute
paths, `..`, bombs, lying headers) refuses the archive; what is wrong with one member (a link that
leaves, a device, a name given twice) is remembered under its path and refuses its environment.
"""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Buffer, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self, override

import zstandard

from evolution.bundle import BundleError
from evolution.paths import path_problem, tree_problems
from evolution.validation import FILE_CAP_BYTES
from sandbox.contracts import SandboxFile

ARCHIVE_CAP_BYTES = 1024 * 1024 * 1024
"""The most that one archive may unpack to, in bytes; more than that comes as a folder."""
MEMBER_CAP = 200_000
RATIO_CAP = 200
"""How many times its packed size something may unpack to, beyond a first 32 MiB."""
_RATIO_FREE_BYTES = 32 * 1024 * 1024
_ZSTD_WINDOW_BYTES = 128 * 1024 * 1024
_DAMAGED = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zstandard.ZstdError,
    gzip.BadGzipFile,
    UnicodeError,
    NotImplementedError,
    ValueError,
    OverflowError,
)


@dataclass(slots=True)
class ArchiveTree:
    """What an archive holds: sound files by path, folders, and the refused members' reasons."""

    files: dict[str, SandboxFile] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    member_cap: int = MEMBER_CAP


def _unpacked_cap(packed_bytes: int) -> int:
    return min(ARCHIVE_CAP_BYTES, max(_RATIO_FREE_BYTES, RATIO_CAP * packed_bytes))


def archive_kind(path: Path) -> str | None:
    """Which kind of archive this is, by its first bytes: zip, tar, gz or zst; None for others."""
    with path.open("rb") as stream:
        head = stream.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        return "gz"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zst"
    return "tar" if head[257:262] == b"ustar" else None


def read_archive(path: Path, *, member_cap: int = MEMBER_CAP) -> ArchiveTree:
    """Read a whole archive. Raises BundleError when it is hostile or damaged, OSError otherwise."""
    kind = archive_kind(path)
    tree = ArchiveTree(member_cap=member_cap)
    try:
        if kind == "zip":
            _read_zip(path, tree)
        else:
            _read_tar(path, kind, tree)
    except _DAMAGED as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BundleError("", f"damaged archive: {reason}") from None
    for name, reason in tree_problems(tree.files.values()).items():
        del tree.files[name]
        tree.refused.setdefault(name, reason)
    return tree


def _clean(name: str, tree: ArchiveTree) -> str:
    """A member's path, normalised as archivers write it. Raises BundleError on a hostile one."""
    path = name.removeprefix("./").rstrip("/")
    if path in ("", "."):
        return ""
    reason = path_problem(path)
    if reason is not None:
        shown = path.encode(errors="replace").decode()[:200]
        raise BundleError(shown, f"hostile archive: {reason}")
    if len(tree.files) + len(tree.folders) + len(tree.refused) >= tree.member_cap:
        raise BundleError(path, f"hostile archive: more than {tree.member_cap:,} members")
    return path


def _put(tree: ArchiveTree, path: str, file: SandboxFile) -> None:
    if path in tree.files or path in tree.folders or path in tree.refused:
        tree.files.pop(path, None)
        tree.refused[path] = "is in the archive twice"
    elif file.mode & 0o7000:
        tree.refused[path] = f"mode {file.mode:o} has a setuid, setgid or sticky bit"
    else:
        tree.files[path] = file


class _Metered(io.RawIOBase):
    """A decompressing stream that stops a bomb: by total size, and by ratio to what was packed."""

    def __init__(self, source: BinaryIO, packed_bytes: int) -> None:
        self._source = source
        self._cap = _unpacked_cap(packed_bytes)
        self._read = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._source.read(len(view))
        self._read += len(data)
        if self._read > self._cap:
            raise BundleError("", f"hostile archive: unpacks to more than {self._cap:,} bytes")
        view[: len(data)] = data
        return len(data)


@contextmanager
def _decompressed(path: Path, kind: str | None) -> Iterator[BinaryIO]:
    packed = path.stat().st_size
    with path.open("rb") as raw:
        if kind == "gz":
            with gzip.GzipFile(fileobj=raw) as stream:
                yield io.BufferedReader(_Metered(_binary(stream), packed))
        elif kind == "zst":
            reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
            with reader.stream_reader(raw, read_across_frames=True) as stream:
                yield io.BufferedReader(_Metered(_binary(stream), packed))
        else:
            yield raw


def _binary(stream: object) -> BinaryIO:
    return stream  # type: ignore[return-value]


def _read_tar(path: Path, kind: str | None, tree: ArchiveTree) -> None:
    header = _header_class()
    with (
        _decompressed(path, kind) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=header) as archive,
    ):
        total = 0
        for member in archive:
            name = _clean(member.name, tree)
            if not name:
                continue
            total += member.size if member.isreg() else 0
            if total > ARCHIVE_CAP_BYTES:
                raise BundleError(name, f"unpacks to more than {ARCHIVE_CAP_BYTES:,} bytes")
            _tar_member(archive, member, name, tree)
    if not header.has_ended:
        raise BundleError("", "damaged archive: it ends before its end mark")


class _Header(tarfile.TarInfo):
    """A member's header, read by a class that remembers whether the end mark was met.

    `tarfile` takes a cut in the middle of a header for the end, and would drop the rest in silence.
    """

    has_ended = False

    @override
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        cls.has_ended = cls.has_ended or (len(buf) == tarfile.BLOCKSIZE and not any(buf))
        return super().frombuf(buf, encoding, errors)


def _header_class() -> type[_Header]:
    """A class of its own for one archive, since the mark is kept on the class."""
    return type("Header", (_Header,), {})


def _tar_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, tree: ArchiveTree
) -> None:
    mode = member.mode & 0o7777
    if member.isdir():
        tree.folders.add(name)
    elif member.issym():
        _put(tree, name, SandboxFile(name, link=member.linkname, mode=0o777))
    elif member.islnk():
        target = tree.files.get(member.linkname.removeprefix("./"))
        if target is None or target.link is not None:
            tree.refused[name] = f"hard link to {member.linkname[:200]!r}, no file before it here"
        else:
            _put(tree, name, SandboxFile(name, target.data, target.mode))
    elif member.issparse():
        tree.refused[name] = "sparse file"
    elif member.isreg():
        if member.size > FILE_CAP_BYTES:
            raise BundleError(name, f"{member.size:,} bytes, at most {FILE_CAP_BYTES:,}")
        content = archive.extractfile(member)
        data = content.read() if content is not None else b""
        if len(data) != member.size:
            raise BundleError(name, "damaged archive: ends in the middle of a file")
        _put(tree, name, SandboxFile(name, data, mode))
    else:
        tree.refused[name] = "neither file, folder nor link (device or pipe)"


def _read_zip(path: Path, tree: ArchiveTree) -> None:
    total = 0
    cap = _unpacked_cap(path.stat().st_size)
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = _clean(member.orig_filename, tree)
            if not name:
                continue
            if member.flag_bits & 0x1:
                raise BundleError(name, "encrypted archive: unpack it and give the folder")
            if member.is_dir():
                tree.folders.add(name)
                continue
            data = _unzipped(archive, member, name)
            total += len(data)
            if total > cap:
                raise BundleError(name, f"hostile archive: unpacks to more than {cap:,} bytes")
            _put_zipped(tree, member, name, data)


def _unzipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes:
    """One member's bytes. Its header may lie: no more is read than it may unpack to."""
    cap = min(FILE_CAP_BYTES, _unpacked_cap(member.compress_size))
    if member.file_size > cap:
        raise BundleError(name, f"hostile archive: unpacks to {member.file_size:,} bytes")
    try:
        with archive.open(member) as stream:
            data = stream.read(cap + 1)
    except RuntimeError as error:  # zipfile's own class for a member that it cannot open
        raise BundleError(name, f"damaged archive: {error}") from None
    if len(data) != member.file_size:
        raise BundleError(name, "damaged archive: its header lies about the size")
    return data


def _put_zipped(tree: ArchiveTree, member: zipfile.ZipInfo, name: str, data: bytes) -> None:
    """Unix modes and links are in the upper half of the attributes, when Unix wrote them."""
    unix = member.external_attr >> 16
    kind = stat.S_IFMT(unix)
    if kind == stat.S_IFLNK:
        target = data.decode(errors="surrogateescape")
        _put(tree, name, SandboxFile(name, link=target, mode=0o777))
    elif kind in (0, stat.S_IFREG):
        _put(tree, name, SandboxFile(name, data, stat.S_IMODE(unix) or 0o644))
    else:
        tree.refused[name] = "neither file, folder nor link (device or pipe)"
