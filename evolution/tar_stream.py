"""A tar.gz as a stream of chunks, the same bytes for the same files."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterable, Iterator

from sandbox.contracts import SandboxFile

_BLOCK = 512
_RECORD = 20 * _BLOCK
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 6
_CHUNK_BYTES = 64 * 1024


def tar_gz(files: Iterable[SandboxFile]) -> Iterator[bytes]:
    """A gzip-compressed tar (PAX) of these files, in their order.

    No times, no names of users, no file name in gzip's own header: nothing but the files decides.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    pending = bytearray()
    for chunk in _tar(files):
        pending += packer.compress(chunk)
        if len(pending) >= _CHUNK_BYTES:
            yield bytes(pending)
            pending.clear()
    yield bytes(pending) + packer.flush()


def _tar(files: Iterable[SandboxFile]) -> Iterator[bytes]:
    written = 0
    for file in files:
        info = tarfile.TarInfo(file.path)
        info.mode = file.mode
        if file.link is None:
            info.size = len(file.data)
        else:
            info.type, info.linkname = tarfile.SYMTYPE, file.link
        header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
        body = file.data if file.link is None else b""
        padding = bytes(-len(body) % _BLOCK)
        written += len(header) + len(body) + len(padding)
        yield header
        yield body
        yield padding
    end = 2 * _BLOCK
    yield bytes(end + -(written + end) % _RECORD)
