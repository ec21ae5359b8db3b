"""The cache of built layers: folders that become the lower layers of an overlay, and manifests."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sandbox.backends import host_root
from sandbox.errors import SandboxUnavailable
from sandbox.reaper import owner_label


class LayerStore:
    """Layers and manifests of one kind of user-id mapping.

    `owner` is the host's id that means root inside, None when that is ourselves. A layer's folder
    is written under `incoming` and renamed into place; nothing half-written has a final name.
    """

    def __init__(self, folder: Path, *, owner: int | None, has_mounted_python: bool) -> None:
        self.folder = folder
        self.owner = owner
        self.has_mounted_python = has_mounted_python
        for path in (folder, folder / "layers", folder / "manifests", folder / "incoming"):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755)
        if owner is not None:
            os.chown(folder / "incoming", owner, owner)
        key = host_root.skeleton_key(has_mounted_python=has_mounted_python)
        self.skeleton_key = key
        self.skeleton = f"layers/skeleton-{key}"
        self._make_skeleton()

    def _make_skeleton(self) -> None:
        if (self.folder / self.skeleton).is_dir():
            return
        incoming = self.folder / "incoming" / self.new_name()
        host_root.write_skeleton(incoming, self.owner, has_mounted_python=self.has_mounted_python)
        self.publish(incoming.name, self.skeleton)

    def new_name(self) -> str:
        """A name for a folder in `incoming` that the reaper can tell the owner of."""
        return f"{owner_label(os.getpid())}-{uuid.uuid4().hex[:12]}"

    def publish(self, incoming: str, final: str) -> None:
        """Give a finished folder its final name; when another process was first, drop ours."""
        source = self.folder / "incoming" / incoming
        try:
            source.rename(self.folder / final)
        except OSError:
            shutil.rmtree(source, ignore_errors=True)
            if not (self.folder / final).is_dir():
                raise SandboxUnavailable(f"the image cache is not writable: {final}") from None

    def manifest(self, key: str) -> dict[str, Any] | None:
        """What is known of an image, or None; marks it as used now."""
        path = self.folder / "manifests" / f"{key}.json"
        try:
            data: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        if not all((self.folder / layer).is_dir() for layer in data["layers"]):
            return None
        os.utime(path)
        return data

    def write_manifest(self, key: str, manifest: dict[str, Any]) -> None:
        """Store what is known of an image, at once or not at all."""
        temporary = self.folder / "incoming" / f"{self.new_name()}.json"
        temporary.write_text(json.dumps(manifest))
        temporary.rename(self.folder / "manifests" / f"{key}.json")

    def layers_of(self, key: str) -> tuple[str, ...]:
        """The layers of an image, the lowest first. Raises SandboxUnavailable when it is gone."""
        manifest = self.manifest(key)
        if manifest is None:
            raise SandboxUnavailable("the image is no longer in the cache; prepare it again")
        return tuple(manifest["layers"])

    def prune(self, max_bytes: int, *, min_age_seconds: float = 86_400.0) -> int:
        """Remove the images that were used longest ago until the cache fits; returns how many.

        What was used within `min_age_seconds` stays: a sandbox may be running on it.
        """
        paths = sorted((self.folder / "manifests").glob("*.json"), key=lambda p: p.stat().st_mtime)
        needed: dict[Path, set[str]] = {}
        for path in paths:
            try:
                needed[path] = set(json.loads(path.read_bytes())["layers"])
            except (OSError, ValueError, KeyError):
                path.unlink(missing_ok=True)
        sizes = {layer: _size(self.folder / layer) for layer in set().union(*needed.values())}
        removed = 0
        for path in list(needed):
            is_recent = time.time() - path.stat().st_mtime < min_age_seconds
            if sum(sizes.values()) <= max_bytes or is_recent:
                break
            path.unlink(missing_ok=True)
            del needed[path]
            removed += 1
            for layer in set(sizes) - set().union(*needed.values()) - {self.skeleton}:
                del sizes[layer]
        self._drop_unneeded(set(sizes), min_age_seconds)
        return removed

    def _drop_unneeded(self, needed: set[str], min_age_seconds: float) -> None:
        for path in (self.folder / "layers").iterdir():
            is_recent = time.time() - path.stat().st_ctime < min_age_seconds
            if f"layers/{path.name}" in needed or is_recent or path.name.startswith("skeleton-"):
                continue
            doomed = self.folder / "incoming" / self.new_name()
            path.rename(doomed)  # at once out of everybody's sight
            shutil.rmtree(doomed, ignore_errors=True)

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold an image's build lock, over all threads and processes."""
        fd = os.open(self.folder / f"lock-{key[:2]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _size(folder: Path) -> int:
    total = 0
    for path, _folders, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total
