"""Bundles in the database: content-addressed blobs, and a manifest per environment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import zstandard

from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile
from webapp.models import Blob, Environment


class CorruptStore(Exception):
    """Stored bytes do not match their digest; the message is one line."""


ManifestRow = list[str | int | None]


def save_blobs(contents: Iterable[bytes]) -> list[str]:
    """Store each content once; returns the digests in order."""
    datas = list(contents)
    digests = [hashlib.sha256(data).hexdigest() for data in datas]
    rows = dict(zip(digests, datas, strict=True))
    known = set(Blob.objects.filter(digest__in=rows).values_list("digest", flat=True))
    Blob.objects.bulk_create(
        [
            Blob(digest=digest, size_bytes=len(data), data=data)
            for digest, data in sorted(rows.items())
            if digest not in known
        ],
        ignore_conflicts=True,
    )
    return digests


def load_blobs(digests: Iterable[str]) -> dict[str, bytes]:
    """The contents by digest. Raises CorruptStore when one is missing or does not match."""
    wanted = set(digests)
    found = {
        blob.digest: bytes(blob.data) for blob in Blob.objects.filter(digest__in=wanted).iterator()
    }
    for digest in sorted(wanted):
        if digest not in found:
            raise CorruptStore(f"blob {digest[:8]}: missing; restore it from a backup")
        if hashlib.sha256(found[digest]).hexdigest() != digest:
            raise CorruptStore(f"blob {digest[:8]}: content damaged; restore it from a backup")
    return found


def save_bundle(bundle: Bundle) -> list[ManifestRow]:
    """Store a bundle's files and return the manifest: [path, mode, digest, size_bytes, link]."""
    regular = [file for file in bundle.files if file.link is None]
    digests = dict(zip([f.path for f in regular], save_blobs(f.data for f in regular), strict=True))
    return [[f.path, f.mode, digests.get(f.path, ""), len(f.data), f.link] for f in bundle.files]


def load_bundle(environment: Environment) -> Bundle:
    """An environment's bundle, checked against its digest. Raises CorruptStore."""
    blobs = load_blobs(str(row[2]) for row in environment.manifest if row[4] is None)
    bundle = Bundle.of(_file(row, blobs) for row in environment.manifest)
    if bundle.digest != environment.digest:
        raise CorruptStore(
            f"environment {environment.pk}: the stored files do not give its digest; "
            "restore the database from a backup"
        )
    return bundle


def _file(row: ManifestRow, blobs: Mapping[str, bytes]) -> SandboxFile:
    path, mode, digest, _, link = row
    data = b"" if link is not None else blobs[str(digest)]
    return SandboxFile(str(path), data, int(mode or 0), None if link is None else str(link))


def save_packed(data: bytes) -> str:
    """Store compressed bytes; returns the digest of the compressed blob."""
    return save_blobs([zstandard.compress(data, 6)])[0]


def load_packed(digest: str) -> bytes:
    """What `save_packed` stored under this digest. Raises CorruptStore."""
    return load_all_packed([digest])[digest]


def load_all_packed(digests: Iterable[str]) -> dict[str, bytes]:
    """The same for many, by digest. Raises CorruptStore when one is missing or damaged."""
    return {name: zstandard.decompress(data) for name, data in load_blobs(digests).items()}
