"""The bare floors: a trial's steps written by hand with the raw docker SDK or with raw bwrap.

The same bundles, images, sandboxes and artifacts as ours, and the reward is read and must be right;
but no limits, no lock-down, no usage, no diagnosis of what fails.
"""

from __future__ import annotations

import io
import os
import posixpath
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath

import docker
from docker.errors import NotFound

from bench.cases import Case, wrong
from bench.measuring import Attempt
from sandbox.backends import host_root
from sandbox.backends.bubblewrap import BubblewrapBackend, find_bwrap
from sandbox.base import Backend
from sandbox.contracts import Image, NetworkMode, SandboxFile, TrialSpec

_REWARD = "logs/verifier/reward.txt"


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - started

    def attempt(self, problem: str) -> Attempt:
        return Attempt(time.monotonic() - self.started, tuple(self.phases.items()), problem)


def floor_of(backend: Backend) -> DockerFloor | BubblewrapFloor:
    """The floor beside a back-end of ours, on its own images."""
    if isinstance(backend, BubblewrapBackend):
        return BubblewrapFloor(backend)
    return DockerFloor(backend)


class DockerFloor:
    """Two containers a trial by the low-level client of the docker SDK."""

    def __init__(self, backend: Backend, docker_host: str | None = None) -> None:
        self.images = _Images(backend)
        self.client = docker.APIClient(base_url=docker_host, num_pools=16, timeout=120)

    def __call__(self, case: Case, agent: str) -> Attempt:
        """One trial."""
        spec = case.trial(agent)
        image = self.images.of(case, spec)
        clock = _Clock()
        carried = self._solve(spec, image, _tar(spec.solver.files, "solution"), clock)
        reward = self._judge(
            spec, image, _tar(spec.verifier.files, "tests", "logs", "logs/verifier"), carried, clock
        )
        return clock.attempt(wrong(agent, reward))

    def close(self) -> None:
        """Let go of the engine."""
        self.client.close()

    @contextmanager
    def _container(self, spec: TrialSpec, image: Image, clock: _Clock) -> Iterator[str]:
        is_closed = spec.network.mode is NetworkMode.NO_NETWORK
        with clock.phase("start"):
            made = self.client.create_container(
                image.ref,
                ["sleep", "infinity"],
                working_dir=image.workdir,
                environment=dict(image.env),
                host_config=self.client.create_host_config(
                    network_mode="none" if is_closed else "bridge"
                ),
            )
            container = str(made["Id"])
            self.client.start(container)
        try:
            yield container
        finally:
            with clock.phase("stop"):
                self.client.remove_container(container, force=True)

    def _exec(self, container: str, command: str, env: Sequence[tuple[str, str]]) -> None:
        words = ["bash", "-c", command]
        started = self.client.exec_create(container, words, environment=dict(env))
        self.client.exec_start(started["Id"])
        self.client.exec_inspect(started["Id"])

    def _solve(
        self, spec: TrialSpec, image: Image, solution: bytes, clock: _Clock
    ) -> list[tuple[str, bytes]]:
        with self._container(spec, image, clock) as container:
            with clock.phase("solver"):
                if spec.solver.command is not None:
                    self.client.put_archive(container, "/", solution)
                    self._exec(container, spec.solver.command, spec.solver.env)
            carried = []
            with clock.phase("collect"):
                for artifact in spec.verifier.artifacts:
                    try:
                        parts, _stat = self.client.get_archive(container, artifact.source)
                    except NotFound:
                        continue
                    carried.append((posixpath.dirname(artifact.source), b"".join(parts)))
        return carried

    def _judge(
        self,
        spec: TrialSpec,
        image: Image,
        tests: bytes,
        carried: list[tuple[str, bytes]],
        clock: _Clock,
    ) -> float | None:
        with self._container(spec, image, clock) as container, clock.phase("verifier"):
            for folder, data in carried:
                self.client.put_archive(container, folder, data)
            self.client.put_archive(container, "/", tests)
            self._exec(container, "/tests/test.sh", spec.verifier.env)
            try:
                parts, _stat = self.client.get_archive(container, f"/{_REWARD}")
            except NotFound:
                return None
            with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
                member = archive.extractfile("reward.txt")
                return _number(member.read()) if member is not None else None


class BubblewrapFloor:
    """Two bwraps a trial, on overlays over the very layers of our image; as a spare user for root.

    The writable layers lie in memory, and files are put in and taken out by way of them.
    """

    def __init__(self, backend: BubblewrapBackend) -> None:
        self.backend = backend
        self.images = _Images(backend)
        self.uid = backend.id_base or os.geteuid()
        self.program_folder = Path(tempfile.mkdtemp(prefix="ratchet-floor-"))
        self.program_folder.chmod(0o711)
        self.program = _program(self.program_folder)
        memory = Path("/dev/shm")  # noqa: S108
        place = memory if memory.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="ratchet-floor-", dir=place))
        self.folder.chmod(0o711)

    def close(self) -> None:
        """Remove what is left."""
        for folder in (self.folder, self.program_folder):
            shutil.rmtree(folder, ignore_errors=True)

    def __call__(self, case: Case, agent: str) -> Attempt:
        """One trial."""
        spec = case.trial(agent)
        image = self.images.of(case, spec)
        layers = _layers(self.backend, image)
        clock = _Clock()
        place = Path(tempfile.mkdtemp(dir=self.folder))
        place.chmod(0o711)
        solving, judging = place / "solving", place / "judging"
        try:
            with clock.phase("solver"):
                self._folder(solving, "solution")
                self._put(solving, "solution", spec.solver.files)
                self._run(spec, image, solving, spec.solver.command or ":", spec.solver.env)
            with clock.phase("collect"):
                self._folder(judging, "logs/verifier")
                for artifact in spec.verifier.artifacts:
                    for layer in (*layers, solving):
                        self._carry(layer, judging, artifact.source.lstrip("/"))
            with clock.phase("verifier"):
                self._put(judging, "tests", spec.verifier.files)
                said = self._run(spec, image, judging, "/tests/test.sh", spec.verifier.env)
                reward = _read_number(judging / _REWARD)
        finally:
            with clock.phase("stop"):
                shutil.rmtree(place)
        problem = wrong(agent, reward)
        return clock.attempt(f"{problem}: {said}" if problem else "")

    def _run(
        self,
        spec: TrialSpec,
        image: Image,
        upper: Path,
        command: str,
        env: Sequence[tuple[str, str]],
    ) -> str:
        """The end of what the command complained of."""
        work = upper.with_name(f"{upper.name}.work")
        work.mkdir()
        self._own(work)
        words = [str(self.program), "--unshare-user", "--uid", "0", "--gid", "0"]
        words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
        if spec.network.mode is NetworkMode.NO_NETWORK:
            words.append("--unshare-net")
        for layer in _layers(self.backend, image):
            words += ["--overlay-src", str(layer)]
        words += ["--overlay", str(upper), str(work), "/"]
        for folder in _host_folders(self.backend):
            words += ["--ro-bind", folder, folder]
        words += ["--proc", "/proc", "--dev", "/dev", "--chdir", image.workdir]
        identity = self.uid if self.uid != os.geteuid() else None
        done = subprocess.run(
            [*words, "--", "bash", "-c", command],
            env=dict((*image.env, *env)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            start_new_session=True,  # as ours: some kernels share CPUs out by session
            user=identity,
            group=identity,
            extra_groups=None if identity is None else [],
        )
        return done.stderr[-200:].decode(errors="replace").strip()

    # -- files --------------------------------------------------------------------------------

    def _own(self, path: Path) -> None:
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def _folder(self, upper: Path, name: str) -> None:
        """Make a folder in a writable layer, with those above it."""
        path = upper
        for part in ("", *PurePosixPath(name).parts):
            path = path / part
            if not path.is_dir():
                path.mkdir()
                self._own(path)

    def _put(self, upper: Path, at: str, files: Sequence[SandboxFile]) -> None:
        for file in files:
            path = upper / at / file.path
            self._folder(upper, os.path.dirname(f"{at}/{file.path}"))
            if file.link is not None:
                path.symlink_to(file.link)
            else:
                path.write_bytes(file.data)
                path.chmod(file.mode)
            self._own(path)

    def _carry(self, layer: Path, upper: Path, name: str) -> None:
        """Copy a path of one layer, with all below it, into a writable layer."""
        source, target = layer / name, upper / name
        try:
            kind = source.lstat().st_mode
        except FileNotFoundError:
            return
        if stat.S_ISCHR(kind):  # how an overlay marks what was deleted
            target.unlink(missing_ok=True)
            return
        self._folder(upper, os.path.dirname(name))
        if stat.S_ISDIR(kind):
            self._folder(upper, name)
            for below in os.listdir(source):
                self._carry(layer, upper, f"{name}/{below}")
            return
        target.unlink(missing_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
        self._own(target)


def _program(folder: Path) -> Path:
    """bwrap, where a spare user may start it: the wheel's lies in a folder closed to others."""
    program = find_bwrap()
    if program.parent.name != "_bin":
        return program
    package = program.parent.parent
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.is_dir():
            shutil.copytree(source, folder / source.name)
    return folder / package.name / "_bin" / program.name


def _layers(backend: BubblewrapBackend, image: Image) -> list[Path]:
    """The folders below the writable one, the lowest first."""
    return [backend.store.folder / name for name in backend.store.layers_of(image.ref)]


def _host_folders(backend: BubblewrapBackend) -> tuple[str, ...]:
    return host_root.host_folders() if backend.name == "bubblewrap" else ()


class _Images:
    """A hand-written program does not look an image up for every trial."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.known: dict[str, Image] = {}

    def of(self, case: Case, spec: TrialSpec) -> Image:
        if case.name not in self.known:
            self.known[case.name] = self.backend.prepare(spec.image)
        return self.known[case.name]


@lru_cache(maxsize=1024)
def _tar(files: tuple[SandboxFile, ...], at: str, *folders: str) -> bytes:
    """A tar of files below a folder, and of empty folders."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for folder in folders:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for file in files:
            entry = tarfile.TarInfo(f"{at}/{file.path}")
            entry.mode = file.mode
            if file.link is not None:
                entry.type, entry.linkname = tarfile.SYMTYPE, file.link
                archive.addfile(entry)
            else:
                entry.size = len(file.data)
                archive.addfile(entry, io.BytesIO(file.data))
    return stream.getvalue()


def _number(data: bytes) -> float | None:
    try:
        return float(data)
    except ValueError:
        return None


def _read_number(path: Path) -> float | None:
    try:
        return _number(path.read_bytes())
    except OSError:
        return None
