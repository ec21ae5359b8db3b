"""Unpacked images as root file systems: asked of a source, unpacked once, started many times."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sandbox.backends.pruning import remove_folder
from sandbox.backends.unpacked import Owners, unpack
from sandbox.backends.user_ids import IdRange, run_mapped
from sandbox.base import ImageSource
from sandbox.contracts import Image, ImageSpec
from sandbox.errors import Refused

if TYPE_CHECKING:
    from sandbox.backends.bubblewrap import BubblewrapBackend


def unpacked_image(backend: BubblewrapBackend, source: ImageSource, spec: ImageSpec) -> Image:
    """The image of a spec, from the cache or from its source.

    Once unpacked, the source is not needed again for this spec: an engine may be stopped. Raises
    what `Backend.prepare` names.
    """
    started = time.monotonic()
    key = _hash(f"unpacked v1 {type(source).__name__} {spec.digest}")
    manifest = backend.store.manifest(key)
    was_cached = manifest is not None
    if manifest is None:
        manifest, was_cached = _unpack(backend, source, spec)
        backend.store.write_manifest(key, manifest)
    user = manifest["user"]
    if backend.id_count == 1 and (user or "root").partition(":")[0] not in ("root", "0"):
        raise Refused(
            f"the image runs as {user!r}, and only root exists in a sandbox without a range of "
            "user ids; run Ratchet as root, or use Docker"
        )
    return Image(
        digest=spec.digest,
        backend=backend.name,
        ref=key,
        workdir=manifest["workdir"],
        env=tuple((name, value) for name, value in manifest["env"]),
        user=user,
        build_seconds=0.0 if was_cached else time.monotonic() - started,
        was_cached=was_cached,
    )


def _unpack(
    backend: BubblewrapBackend, source: ImageSource, spec: ImageSpec
) -> tuple[dict[str, Any], bool]:
    """What is known of the image, and whether its content lay unpacked here already."""
    store = backend.store
    image = source.prepare(spec)
    key = _hash(image.ref)
    layer = f"layers/root-{key[:32]}"
    with store.lock(key):
        was_there = (store.folder / layer).is_dir()
        if not was_there:
            name = store.new_name()
            folder = store.folder / "incoming" / name
            try:
                with source.export(image) as stream:
                    _unpack_stream(backend.ids, stream, folder, store.folder / "objects")
            except BaseException:
                remove_folder(folder)
                raise
            store.publish(name, layer)
    manifest = {
        "layers": [layer, store.container_files],
        "workdir": image.workdir or "/",
        "env": list(image.env),
        "user": image.user,
    }
    return manifest, was_there


def _unpack_stream(ids: IdRange, stream: IO[bytes], folder: Path, objects: Path) -> None:
    if ids.helpers:  # an ordinary user can give files away only as root of a namespace
        run_mapped(ids, "unpack", str(folder), str(objects), stream=stream)
    else:
        unpack(stream, folder, Owners(ids.base, ids.count), objects)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
