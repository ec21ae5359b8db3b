"""What lies in files once every ordinary wrapping is taken off: archives, compression, encodings.

Bounded in depth and in bytes: what is too large to be looked into is counted, never guessed.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from evolution.gates.git_packs import pack_objects

DEEPEST = 4
LARGEST_BYTES = 16 * 1024 * 1024
TOTAL_BYTES = 96 * 1024 * 1024

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{40,}(?:\s{1,3}[A-Za-z0-9+/_-]{4,})*={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}[\s:]{0,2}){32,}")
_ESCAPED = re.compile(rb"(?:\\x[0-9a-fA-F]{2}){16,}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Some content. `place` says where it lies: a path, then what was taken off, step by step."""

    place: str
    data: bytes
    depth: int = 0

    @property
    def path(self) -> str:
        """The file that holds it."""
        return self.place.partition(" → ")[0]


@dataclass(slots=True)
class Unpacker:
    """Takes wrappings off within one budget of bytes; `skipped` names what was too large."""

    budget: int = TOTAL_BYTES
    skipped: list[str] = field(default_factory=list)
    _seen: set[bytes] = field(default_factory=set)

    def all_of(self, files: Iterable[tuple[str, bytes]]) -> Iterator[Blob]:
        """Every file as it is, and everything inside it."""
        waiting = [Blob(path, data) for path, data in files]
        for blob in waiting:
            yield blob
            yield from self._inside(blob)

    def _inside(self, blob: Blob) -> Iterator[Blob]:
        if blob.depth >= DEEPEST:
            return
        for how, data in self._layers(blob):
            if not data or (data in self._seen and len(data) < LARGEST_BYTES):
                continue
            if len(data) > LARGEST_BYTES or len(data) > self.budget:
                self.skipped.append(blob.place)
                continue
            self._seen.add(data)
            self.budget -= len(data)
            inner = Blob(f"{blob.place} → {how}", data, blob.depth + 1)
            yield inner
            yield from self._inside(inner)

    def _layers(self, blob: Blob) -> Iterator[tuple[str, bytes]]:
        data = blob.data
        for head, how, opened in _WRAPPINGS:
            if data.startswith(head):
                yield from ((how, part) for part in self._tried(blob, opened))
                if how != "zlib":
                    return
        if data.startswith(b"PACK"):
            yield from (("git object", part) for part in pack_objects(data, self.budget))
        elif data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            yield from self._tried_members(blob, _zip_members)
        elif data[257:262] == b"ustar":
            yield from self._tried_members(blob, _tar_members)
        else:
            yield from _encoded(data)

    def _tried(self, blob: Blob, opened: Callable[[bytes], bytes]) -> Iterator[bytes]:
        try:
            yield opened(blob.data)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            return

    def _tried_members(
        self, blob: Blob, members: Callable[[bytes], Iterator[tuple[str, bytes]]]
    ) -> Iterator[tuple[str, bytes]]:
        try:
            yield from members(blob.data)
        except (OSError, EOFError, ValueError, KeyError, RuntimeError, NotImplementedError):
            return
        except (zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile):
            return


def _gunzip(data: bytes) -> bytes:
    return _inflated(zlib.decompressobj(31), data)


def _zlib(data: bytes) -> bytes:
    return _inflated(zlib.decompressobj(), data)


def _inflated(opener: zlib._Decompress, data: bytes) -> bytes:
    """At most one byte more than is looked into."""
    return opener.decompress(data, LARGEST_BYTES + 1)


def _bunzip(data: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(data, LARGEST_BYTES + 1)


def _unxz(data: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(data, LARGEST_BYTES + 1)


_WRAPPINGS: tuple[tuple[bytes, str, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", "gzip", _gunzip),
    (b"BZh", "bzip2", _bunzip),
    (b"\xfd7zXZ", "xz", _unxz),
    (b"\x78\x01", "zlib", _zlib),
    (b"\x78\x9c", "zlib", _zlib),
    (b"\x78\xda", "zlib", _zlib),
)


def _zip_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if not member.is_dir() and member.file_size <= LARGEST_BYTES:
                with archive.open(member) as opened:
                    yield f"zip member {member.filename}", opened.read(LARGEST_BYTES + 1)


def _tar_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.isfile() else None
            if opened is not None and member.size <= LARGEST_BYTES:
                yield f"tar member {member.name}", opened.read(LARGEST_BYTES + 1)


def _encoded(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Text in another character set, and what is written in letters for bytes."""
    for codec in ("utf-16", "utf-16-le", "utf-16-be"):
        if _looks_wide(data, codec):
            try:
                yield codec, data.decode(codec).encode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                continue
            return
    for match in _HEX.finditer(data):
        yield "hex", binascii.unhexlify(re.sub(rb"[\s:]", b"", match[0]))
    for match in _ESCAPED.finditer(data):
        yield "escapes", binascii.unhexlify(match[0].replace(b"\\x", b""))
    for match in _BASE64.finditer(data):
        text = re.sub(rb"\s", b"", match[0]).rstrip(b"=").translate(_URL_SAFE)
        yield "base64", base64.b64decode(text[: len(text) - (len(text) % 4 == 1)] + b"==")


_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def _looks_wide(data: bytes, codec: str) -> bool:
    if codec == "utf-16":
        return data[:2] in (b"\xff\xfe", b"\xfe\xff")
    place = 1 if codec == "utf-16-le" else 0
    sample = data[:512]
    return len(sample) >= 32 and sample[place::2].count(0) * 10 >= 9 * len(sample[place::2])
