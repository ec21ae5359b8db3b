"""The Docker back-end: any image, hardened containers, one stream per container.

    backend = DockerBackend(runtime_dir=home / "sandbox", cache_dir=home / "cache")
    with backend.start(backend.prepare(spec), Limits(), NetworkPolicy()) as sandbox:
        sandbox.exec(["bash", "-c", "id"], timeout_seconds=10)

An instance may be used by many threads, and many processes may share the two folders.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from docker.errors import APIError, NotFound

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
from sandbox.backends.docker_sandbox import DRIVER_PROCESSES, DockerSandbox
from sandbox.backends.docker_watch import Watch, disk_bytes
from sandbox.contracts import Image, ImageSpec, Limits, Mount, NetworkMode, NetworkPolicy
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
        self.driver = ("bash", "-p", "-c", script, "ratchet")
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
            config = self._config(image, effective, mode, mounts)
            if place.cpu_set:
                config["HostConfig"]["CpusetCpus"] = ",".join(map(str, place.cpu_set))
            sandbox = self._run(config, image, effective)
        except BaseException:
            place.release()
            raise
        sandbox.waited_seconds = place.waited_seconds
        with self._lock:
            self._held[sandbox.container.key] = place
        return sandbox

    def _run(self, config: dict[str, Any], image: Image, limits: EffectiveLimits) -> DockerSandbox:
        try:
            container = self.engine.create(config)
        except SandboxUnavailable as error:
            if isinstance(error.__cause__, NotFound):
                self.images.forget(image.digest)
            raise
        try:
            stream = container.start()
        except BaseException:
            container.remove()
            raise
        return DockerSandbox(self, container, stream, image, limits)

    def _network(self, network: NetworkPolicy) -> str:
        if network.mode is NetworkMode.NO_NETWORK:
            return "none"
        if network.mode is NetworkMode.PUBLIC:
            return self._bridge()
        raise Refused(f"network_mode = {network.mode.value!r} is not offered by Docker here")

    def _bridge(self) -> str:
        """The network of public sandboxes, on which they do not see each other."""
        name = f"ratchet-{self.labels[HOME_LABEL]}"
        with engine_errors("make a network"):
            if self.engine.api.networks(names=[f"^{name}$"]):
                return name
            try:
                self.engine.api.create_network(
                    name,
                    driver="bridge",
                    check_duplicate=True,
                    options={"com.docker.network.bridge.enable_icc": "false"},
                    labels={LABEL: "network"} | self.labels,
                )
            except APIError as error:
                if error.status_code != 409:
                    raise
        return name

    def _config(
        self, image: Image, limits: EffectiveLimits, network: str, mounts: Sequence[Mount]
    ) -> dict[str, Any]:
        host: dict[str, Any] = {
            "NetworkMode": network,
            "CapDrop": ["ALL"],
            "CapAdd": list(CAPABILITIES),
            "SecurityOpt": ["no-new-privileges"],
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
            "Hostname": "sandbox",
            "User": "0:0",
            "Entrypoint": list(self.driver),
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

    def disk_bytes(self, container: Container) -> int | None:
        """What a container has written."""
        return disk_bytes(container)

    def watch(self, sandbox: DockerSandbox) -> None:
        """See `Keeper.watch`."""
        self._watch.add(sandbox)

    def unwatch(self, sandbox: DockerSandbox) -> None:
        """See `Keeper.unwatch`."""
        self._watch.remove(sandbox)

    def let_go(self, sandbox: DockerSandbox) -> None:
        """See `Keeper.let_go`."""
        with self._lock:
            place = self._held.pop(sandbox.container.key, None)
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
        container = self.engine.create(config)
        try:
            with exported(self.engine, container.key) as stream:
                yield stream
        finally:
            container.remove()

    def enforcement(self) -> tuple[str, ...]:
        """See `Backend.enforcement`."""
        return (
            "disk is measured four times a second: more than the limit may be written for a moment,"
            " then everything in the sandbox is ended",
            "a public network reaches what Docker's default bridge reaches, this machine's own"
            " addresses among them, but no other sandbox",
            "programs and opened files are not traced under Docker",
        )

    def close(self) -> None:
        """See `Backend.close`."""
        self._watch.close()
        self.engine.close()


def labels(home: Path) -> dict[str, str]:
    """Whose things these are: the process, the machine since its start, the folder of images."""
    import hashlib

    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {
        OWNER_LABEL: owner_label(os.getpid()),
        HOST_LABEL: boot,
        HOME_LABEL: hashlib.sha256(os.fsencode(home)).hexdigest()[:12],
    }
