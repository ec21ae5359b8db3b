"""The cache of built layers: folders that become the lower layers of an overlay, and manifests."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sandbox.backends import container_files, host_root
from sandbox.backends.pruning import remove_folder
from sandbox.errors import SandboxUnavailable
from sandbox.reaper import owner_label


class Hold:
    """Keeps layers from being removed; as long as it is held, or until its process ends."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def take(self, path: Path) -> bool:
        """Hold one folder more; False when it is not there."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        self._fds.append(fd)
        fcntl.flock(fd, fcntl.LOCK_SH)
        try:  # it may have been removed while we waited
            return os.path.samestat(os.fstat(fd), os.stat(path))
        except OSError:
            return False

    def release(self) -> None:
        """Let go. May be called twice."""
        while self._fds:
            os.close(self._fds.pop())


class LayerStore:
    """Layers and manifests of one kind of user-id mapping.

    `owner` is the host's id that means root inside, None when that is ourselves. A layer's folder
    is written under `incoming` and renamed into place; nothing half-written has a final name.
    """

    def __init__(self, folder: Path, *, owner: int | None, has_mounted_python: bool) -> None:
        self.folder = folder
        self.owner = owner
        self.has_mounted_python = has_mounted_python
        for name in ("", "layers", "manifests", "incoming", "objects"):
            path = folder / name
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755)
        if owner is not None:
            os.chown(folder / "incoming", owner, owner)
        self.skeleton_key = host_root.skeleton_key(has_mounted_python=has_mounted_python)
        self.skeleton = f"layers/skeleton-{self.skeleton_key}"
        self.container_files = f"layers/container-{container_files.KEY}"
        self._bases: dict[str, Callable[[Path], None]] = {
            self.skeleton: lambda at: host_root.write_skeleton(
                at, owner, has_mounted_python=has_mounted_python
            ),
            self.container_files: lambda at: container_files.write(at, owner),
        }
        for layer in self._bases:
            self._make_base(layer)

    def _make_base(self, layer: str) -> None:
        try:
            os.utime(self.folder / layer)  # what is used is not pruned
        except OSError:
            incoming = self.folder / "incoming" / self.new_name()
            self._bases[layer](incoming)
            self.publish(incoming.name, layer)

    def new_name(self) -> str:
        """A name for a folder in `incoming` that the reaper can tell the owner of."""
        return f"{owner_label(os.getpid())}-{uuid.uuid4().hex[:12]}"

    def publish(self, incoming: str, final: str) -> None:
        """Give a finished folder its final name; when another process was first, drop ours."""
        source = self.folder / "incoming" / incoming
        try:
            source.rename(self.folder / final)
        except OSError:
            remove_folder(source)
            if not (self.folder / final).is_dir():
                raise SandboxUnavailable(f"the image cache is not writable: {final}") from None

    def manifest(self, key: str) -> dict[str, Any] | None:
        """What is known of an image, or None; marks it as used now."""
        path = self.folder / "manifests" / f"{key}.json"
        try:
            data: dict[str, Any] = json.loads(path.read_bytes())
            if not all((self.folder / layer).is_dir() for layer in data["layers"]):
                return None
            os.utime(path)
        except (OSError, ValueError, KeyError):
            return None
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

    def hold(self, layers: Sequence[str]) -> Hold:
        """Keep layers from being removed. Raises SandboxUnavailable when one is gone already."""
        hold = Hold()
        try:
            for layer in layers:
                if not hold.take(self.folder / layer):
                    if layer not in self._bases:
                        raise SandboxUnavailable(
                            "the image is no longer in the cache; prepare it again"
                        )
                    self._make_base(layer)
                    hold.take(self.folder / layer)
        except BaseException:
            hold.release()
            raise
        return hold

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold an image's build lock, over all threads and processes."""
        fd = os.open(self.folder / f"lock-{key[:2]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
