"""The Docker back-end: any image, hardened containers, one stream per container.

    backend = DockerBackend(runtime_dir=home / "sandbox", cache_dir=home / "cache")
    with backend.start(backend.prepare(spec), Limits(), NetworkPolicy()) as sandbox:
        sandbox.exec(["bash", "-c", "id"], timeout_seconds=10)

An instance may be used by many threads, and many processes may share the two folders.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from docker.errors import APIError, ImageNotFound

from sandbox.backends.docker_engine import (
    HOME_LABEL,
    HOST_LABEL,
    LABEL,
    OWNER_LABEL,
    Container,
    Engine,
    engine_errors,
)
from sandbox.backends.docker_images import BACKEND, ImageStore
from sandbox.backends.docker_profile import MASKED_PATHS, readonly_paths, seccomp_profile
from sandbox.backends.docker_reaper import home_label, host_label
from sandbox.backends.docker_sandbox import DRIVER_PROCESSES, DockerSandbox
from sandbox.backends.docker_watch import Watch
from sandbox.contracts import (
    HOST_NAME,
    Image,
    ImageSpec,
    Limits,
    Mount,
    NetworkMode,
    NetworkPolicy,
)
from sandbox.errors import Refused, SandboxUnavailable
from sandbox.limits import EffectiveLimits, memory_to_pack, resolve_limits
from sandbox.places import Place, Places
from sandbox.reaper import owner_label

CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETUID",
    "SYS_CHROOT",
)
"""What root in a task needs: packages are installed, files given away, services dropped to their
own user (sshd and apt also change root), a port below 1024 bound, another user's process ended.
Not given of Docker's own set: NET_RAW, MKNOD, AUDIT_WRITE, SETFCAP, SETPCAP."""

_LATE_SECONDS = 60.0
_DRIVER = Path(__file__).with_name("docker_driver.sh")


class DockerBackend:
    """Sandboxes by Docker.

    `runtime_dir` holds what packs sandboxes on this machine, unless `places` are given; `cache_dir`
    knows when images were used. `url`: the engine, by default that of the environment
    (DOCKER_HOST). `runtime`: another OCI runtime (`runsc`, `kata`). `pull`: whether a missing base
    image is fetched.
    """

    name = BACKEND

    def __init__(
        self,
        runtime_dir: Path,
        cache_dir: Path,
        *,
        url: str | None = None,
        runtime: str | None = None,
        places: Places | None = None,
        pull: bool = True,
    ) -> None:
        self.runtime_dir = Path(runtime_dir).absolute()
        self.cache_dir = Path(cache_dir).absolute()
        self.runtime = runtime
        self.engine = Engine(url)
        self.labels = labels(self.cache_dir)
        self.runtime_dir.mkdir(parents=True, exist_ok=True)
        self.places = places or Places(self.runtime_dir / "places")
        self.images = ImageStore(
            self.engine,
            self.cache_dir / "docker",
            {HOME_LABEL: self.labels[HOME_LABEL]},
            self.places,
            pull=pull,
        )
        script = _DRIVER.read_text(encoding="utf-8")
        self._driver = ("bash", "-p", "-c", script, "ratchet")
        self._leftovers: dict[str, tuple[Container, float]] = {}
        self._watch = Watch()
        self._held: dict[str, Place] = {}
        self._lock = threading.Lock()

    def prepare(self, spec: ImageSpec) -> Image:
        """See `Backend.prepare`. Builds of the same image by several processes wait for one."""
        try:
            return self.images.prepare(spec)
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
    ) -> DockerSandbox:
        """See `Backend.start`. Waits for a free place on this machine."""
        if image.backend != self.name:
            raise Refused(f"an image of {image.backend!r} cannot be started by Docker")
        mode = self._network(network)
        effective = resolve_limits(limits, can_use_quota=True)
        most = self.places.capacity.memory_bytes
        memory_bytes = memory_to_pack(limits, is_disk_memory=False, most=most)
        place = self.places.acquire(cpus=limits.cpus, memory_bytes=memory_bytes, party=party)
        try:
            config = self._config(image, effective, mode, mounts) | {"Hostname": host_name}
            if place.cpu_set:
                config["HostConfig"]["CpusetCpus"] = ",".join(map(str, place.cpu_set))
            sandbox = self._run(config, image, effective)
        except BaseException:
            place.release()
            raise
        sandbox.waited_seconds = place.waited_seconds
        with self._lock:
            self._held[sandbox.container.name] = place
        return sandbox

    def _run(self, config: dict[str, Any], image: Image, limits: EffectiveLimits) -> DockerSandbox:
        self._clear_up()
        container = self._new_container()
        try:
            container.create(config)
            stream = container.start()
        except BaseException as error:
            if isinstance(error.__cause__, ImageNotFound):
                self.images.forget(image.digest)
            self._discard(container)
            raise
        return DockerSandbox(self, container, stream, image, limits, driver=config["Entrypoint"])

    def _new_container(self) -> Container:
        return Container(self.engine, f"ratchet-{self.labels[OWNER_LABEL]}-{secrets.token_hex(6)}")

    def _discard(self, container: Container) -> None:
        """Remove a container, later if not now: an engine that was lost may still be making it."""
        try:
            if container.remove() or container.is_made:
                return
        except SandboxUnavailable:
            pass
        with self._lock:
            self._leftovers[container.name] = (container, time.monotonic())

    def _clear_up(self) -> None:
        """Try again what could not be removed."""
        with self._lock:
            waiting = list(self._leftovers.values())
        for container, since in waiting:
            try:
                is_late = time.monotonic() - since > _LATE_SECONDS
                is_over = container.remove() or container.is_made or is_late
            except SandboxUnavailable:
                continue
            if is_over:
                with self._lock:
                    self._leftovers.pop(container.name, None)

    def _network(self, network: NetworkPolicy) -> str:
        if network.mode is NetworkMode.NO_NETWORK:
            return "none"
        if network.mode is NetworkMode.PUBLIC:
            return self._bridge()
        raise Refused(f"network_mode = {network.mode.value!r} is not offered by Docker here")

    def _bridge(self) -> str:
        """The network of public sandboxes, on which they do not see each other.

        One at a time, in all processes of this home: the engine would keep several of one name,
        and then start nothing on them.
        """
        name = f"ratchet-{self.labels[HOME_LABEL]}"
        self.cache_dir.mkdir(parents=True, exist_ok=True)
        with engine_errors("make a network"), (self.cache_dir / "network.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.engine.api.networks(names=[f"^{name}$"])
            for one in found[1:]:
                with contextlib.suppress(APIError):  # somebody is on it
                    self.engine.api.remove_network(one["Id"])
            if not found:
                self.engine.api.create_network(
                    name,
                    driver="bridge",
                    options={"com.docker.network.bridge.enable_icc": "false"},
                    labels={LABEL: "network"} | self.labels,
                )
        return name

    def _config(
        self, image: Image, limits: EffectiveLimits, network: str, mounts: Sequence[Mount]
    ) -> dict[str, Any]:
        host: dict[str, Any] = {
            "NetworkMode": network,
            "CapDrop": ["ALL"],
            "CapAdd": list(CAPABILITIES),
            "SecurityOpt": ["no-new-privileges", f"seccomp={seccomp_profile()}"],
            "MaskedPaths": list(MASKED_PATHS),
            "ReadonlyPaths": list(readonly_paths()),
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "PidsLimit": limits.processes + DRIVER_PROCESSES,
            "ShmSize": min(limits.memory_bytes, limits.disk_bytes),
            "Ulimits": [
                {"Name": "nofile", "Soft": limits.descriptors, "Hard": limits.descriptors},
                {"Name": "core", "Soft": 0, "Hard": 0},
            ],
            "LogConfig": {"Type": "none"},
            "Mounts": [
                {"Type": "bind", "Source": m.source, "Target": m.target, "ReadOnly": True}
                for m in mounts
            ],
        }
        if limits.cpu_quota is not None:
            host["NanoCpus"] = int(limits.cpu_quota * 1e9)
        if self.runtime is not None:
            host["Runtime"] = self.runtime
        return {
            "Image": image.ref,
            "User": "0:0",
            "Entrypoint": [*self._driver, str(-(-limits.disk_bytes // 1024))],
            "Cmd": [],
            "WorkingDir": "/",
            "Healthcheck": {"Test": ["NONE"]},
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "Labels": {LABEL: "sandbox"} | self.labels,
            "HostConfig": host,
        }

    # -- what sandboxes ask for ---------------------------------------------------------------

    def watch(self, sandbox: DockerSandbox) -> None:
        """See `Keeper.watch`."""
        self._watch.add(sandbox)

    def unwatch(self, sandbox: DockerSandbox) -> None:
        """See `Keeper.unwatch`."""
        self._watch.remove(sandbox)

    def let_go(self, sandbox: DockerSandbox) -> None:
        """See `Keeper.let_go`."""
        try:
            self._discard(sandbox.container)
        finally:
            with self._lock:
                place = self._held.pop(sandbox.container.name, None)
            if place is not None:
                place.release()

    @contextmanager
    def export(self, image: Image) -> Iterator[IO[bytes]]:
        """See `ImageSource.export`."""
        from sandbox.backends.docker_export import exported

        config = {
            "Image": image.ref,
            "Entrypoint": ["/"],
            "Cmd": [],
            "Labels": {LABEL: "export"} | self.labels,
            "HostConfig": {"NetworkMode": "none"},
        }
        container = self._new_container()
        try:
            container.create(config)
            with exported(self.engine, container.name) as stream:
                yield stream
        finally:
            self._discard(container)

    def enforcement(self) -> tuple[str, ...]:
        """See `Backend.enforcement`."""
        return (
            "disk is measured four times a second: more than the limit may be written for a moment,"
            " then everything in the sandbox is ended",
            "a public network reaches what Docker's default bridge reaches, this machine's own"
            " addresses among them, but no other sandbox",
            "images are built in containers as the engine makes them, less closed than sandboxes:"
            " with a network, and able to change modes of the machine's files in /proc",
            "programs and opened files are not traced under Docker",
        )

    def close(self) -> None:
        """See `Backend.close`."""
        self._watch.close()
        self._clear_up()
        self.engine.close()


def labels(home: Path) -> dict[str, str]:
    """Whose things these are: the process, those who can see it, the folder of images."""
    return {
        OWNER_LABEL: owner_label(os.getpid()),
        HOST_LABEL: host_label(),
        HOME_LABEL: home_label(home),
    }
