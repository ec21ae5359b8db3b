"""Images: built once per digest from a bundle's `environment/`, found again, and let go.

The classic builder is used, through the SDK. What an image is built from must be here or be
pulled first; when that cannot be, it is no fault of the bundle and is told apart from one.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import io
import json
import os
import re
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests
import urllib3.exceptions
from docker.errors import APIError, DockerException, ImageNotFound
from docker.utils.build import PatternMatcher

from sandbox.backends.docker_bases import base_images, needs_buildkit
from sandbox.backends.docker_engine import LABEL, Engine, engine_errors, message_of, one_line
from sandbox.backends.docker_tar import plain_parts
from sandbox.contracts import Image, ImageSpec, SandboxFile
from sandbox.errors import TOO_SLOW, ImageBuildFailed, Refused, SandboxError, SandboxUnavailable
from sandbox.places import Places
from sandbox.warden.files import FIXED_TIME

REPOSITORY = "ratchet/env"
BACKEND = "docker"
DIGEST_LABEL = "ratchet.digest"
_LOG_LINES = 40
_BUILD_MEMORY_BYTES = 4 * 1024**3
_BUILD_PACKED_BYTES = 1024**3
"""What a build is counted as: few come near their ceiling."""
_MISSING_SECONDS = 60.0
_NAME = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
    r"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?(?:@[a-z][a-z0-9]*:[0-9a-f]{32,})?",
    re.ASCII,
)
_NOT_THE_BUNDLES = re.compile(
    r"no space left on device|temporary failure|could ?n[o']t (resolve|connect)|"
    r"network is unreachable|no route to host|connection (timed out|refused|reset|failed)|"
    r"name or service not known|\b50[234] (bad gateway|service|gateway)|"
    r"failed to create endpoint",
    re.IGNORECASE,
)
"""What a full disk and a network that fails look like in a build: to be tried again."""
_BROKEN_OFF = (
    *(DockerException, requests.RequestException, urllib3.exceptions.HTTPError),
    *(http.client.HTTPException, OSError, ValueError),
    AttributeError,  # the SDK looks into a connection that is closed already
)
"""How a stream from the engine may end before its end."""


class ImageStore:
    """The images of one engine. `pull` says whether a missing base image is fetched."""

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        labels: dict[str, str],
        places: Places,
        *,
        pull: bool = True,
    ) -> None:
        self.engine = engine
        self.places = places
        self.folder = folder
        self.labels = labels
        self.pull = pull
        self._known: dict[str, Image] = {}
        self._missing: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()
        (folder / "locks").mkdir(parents=True, exist_ok=True)
        (folder / "used").mkdir(parents=True, exist_ok=True)

    def prepare(self, spec: ImageSpec) -> Image:
        """See `Backend.prepare`."""
        digest = spec.digest
        with self._lock:
            known = self._known.get(digest)
        if known is None or not self._used(digest).exists():  # the reaper may have removed it
            with self._alone(digest):
                known = self._found(spec, digest)
                made = known or self._build(spec, digest)
            with self._lock:
                self._known[digest] = _again(made)
            self._use(digest)
            return made
        self._use(digest)
        return known

    def forget(self, digest: str) -> None:
        """The image turned out to be gone."""
        with self._lock:
            self._known.pop(digest, None)

    def _use(self, digest: str) -> None:
        """Remember when an image was used last."""
        with contextlib.suppress(OSError):
            self._used(digest).touch()

    def _used(self, digest: str) -> Path:
        return self.folder / "used" / digest

    @contextlib.contextmanager
    def _alone(self, digest: str) -> Iterator[None]:
        """One builder per digest among all threads and processes of this folder."""
        fd = os.open(self.folder / "locks" / digest, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _found(self, spec: ImageSpec, digest: str) -> Image | None:
        config = self.inspect(f"{REPOSITORY}:{digest}")
        return None if config is None else _image(spec, digest, config, 0.0, was_cached=True)

    def inspect(self, name: str) -> dict[str, Any] | None:
        """What the engine knows of an image, or None when it is not here."""
        with engine_errors("look at an image"):
            try:
                found: dict[str, Any] = self.engine.api.inspect_image(name)
            except ImageNotFound:
                return None
        return found

    # -- building -----------------------------------------------------------------------------

    def _build(self, spec: ImageSpec, digest: str) -> Image:
        started = time.monotonic()
        if spec.docker_image is not None:
            check_name(spec.docker_image)
        context = context_of(spec)
        dockerfile = next((f.data for f in context if f.path == "Dockerfile"), None)
        if dockerfile is None:
            raise ImageBuildFailed("environment/: there is no Dockerfile and no docker_image")
        if what := needs_buildkit(dockerfile):
            raise Refused(f"Dockerfile: {what} needs BuildKit, which is not used here")
        seconds = spec.build_timeout_seconds
        for name in base_images(dockerfile):
            check_name(name)
            self._require(name, started + seconds)
        memory_bytes = min(_BUILD_PACKED_BYTES, self.places.capacity.memory_bytes)
        with self.places.acquire(memory_bytes=memory_bytes):
            # The time that was waited for a place is not the bundle's.
            self._run_build(context, digest, time.monotonic() + seconds, seconds)
        config = self.inspect(f"{REPOSITORY}:{digest}")
        if config is None:
            raise SandboxUnavailable("the image that was just built is gone")
        return _image(spec, digest, config, time.monotonic() - started, was_cached=False)

    def _require(self, name: str, deadline: float) -> None:
        """Have a base image here, or say in one line that it is missing."""
        if self.inspect(name) is not None:
            return
        when, reason = self._missing.get(name, (0.0, ""))
        if time.monotonic() - when > _MISSING_SECONDS or not reason:
            reason = self._pull(name, deadline) if self.pull else "pulling is switched off"
            self._missing[name] = (time.monotonic(), reason)
        if reason:
            raise Refused(
                f"the base image {name!r} is not on this machine and could not be pulled: {reason}"
            )

    def _pull(self, name: str, deadline: float) -> str:
        """Pull an image; why not, or nothing."""
        repository, tag = _split(name)
        try:
            for line in self.engine.api.pull(repository, tag=tag, stream=True, decode=True):
                if "error" in line:
                    return one_line(line["error"], 200)
                if time.monotonic() > deadline:
                    return "it took too long"
        except APIError as error:
            return message_of(error)[:200]
        return "" if self.inspect(name) is not None else "the registry did not give it"

    def _run_build(
        self, context: list[SandboxFile], digest: str, deadline: float, seconds: float
    ) -> None:
        api = self.engine.api
        headers = {"Content-Type": "application/x-tar"}
        api._set_auth_headers(headers)
        params = {
            "t": f"{REPOSITORY}:{digest}",
            "rm": True,
            "forcerm": True,
            "memory": _BUILD_MEMORY_BYTES,
            "memswap": _BUILD_MEMORY_BYTES,
            "labels": json.dumps({LABEL: "image", DIGEST_LABEL: digest} | self.labels),
        }
        lines: list[str] = []
        with engine_errors("build an image"):
            answer = api._post(
                api._url("/build"),
                data=_context_tar(context),
                params=params,
                headers=headers,
                stream=True,
                timeout=(30, max(1.0, deadline - time.monotonic())),
            )
            try:
                api._raise_for_status(answer)
            except APIError as error:
                is_lost = "locate specified Dockerfile" in message_of(error)  # a link to nowhere
                if error.is_client_error() or is_lost:
                    raise ImageBuildFailed(f"Dockerfile: {message_of(error)}") from error
                raise
            alarm = threading.Timer(max(0.1, deadline - time.monotonic()), _cut, (api, answer))
            alarm.daemon = True
            alarm.start()
            try:
                for event in api._stream_helper(answer, decode=True):
                    _note(event, lines)
                    if "error" in event:
                        raise _failure(event, lines)
            except _BROKEN_OFF as error:
                if time.monotonic() < deadline:  # else we have cut it off ourselves
                    reason = one_line(error, 200)
                    raise SandboxUnavailable(f"the engine broke off a build: {reason}") from error
            finally:
                alarm.cancel()
                answer.close()
        if time.monotonic() >= deadline and self.inspect(f"{REPOSITORY}:{digest}") is None:
            log = "\n".join(lines[-_LOG_LINES:])
            raise ImageBuildFailed(f"the image was not built within {seconds:g} s: {TOO_SLOW}", log)


def check_name(name: str) -> None:
    """Raises ImageBuildFailed for what can be no name of an image, wherever one looks for it."""
    if not _NAME.fullmatch(name):
        raise ImageBuildFailed(f"environment/: not a name of an image: {one_line(name, 200)!r}")


def context_of(spec: ImageSpec) -> list[SandboxFile]:
    """What the builder gets.

    A prebuilt image without a Dockerfile takes the files into its working directory; beside a
    prebuilt image a Dockerfile is of no use, as in Harbor.
    """
    has_dockerfile = any(file.path == "Dockerfile" for file in spec.files)
    if spec.docker_image is None:
        return _not_ignored(list(spec.files))
    lines = [f"FROM {spec.docker_image}"]
    files: list[SandboxFile] = []
    if not has_dockerfile and spec.files:
        files = [
            SandboxFile(f"files/{file.path}", file.data, file.mode, file.link)
            for file in spec.files
        ]
        lines.append("COPY " + json.dumps(["files/", (spec.workdir or ".").rstrip("/") + "/"]))
    return [SandboxFile("Dockerfile", ("\n".join(lines) + "\n").encode()), *files]


def _not_ignored(files: list[SandboxFile]) -> list[SandboxFile]:
    ignore = next((file for file in files if file.path == ".dockerignore"), None)
    if ignore is None or ignore.link is not None:
        return files
    text = ignore.data.decode("utf-8", "replace").lstrip("\ufeff")
    patterns = [line.strip() for line in text.splitlines()]
    matcher = PatternMatcher([line for line in patterns if line and not line.startswith("#")])
    is_ignored: Callable[[str], bool] = matcher.matches  # type: ignore[assignment]
    always = ("Dockerfile", ".dockerignore")
    return [file for file in files if file.path in always or not is_ignored(file.path)]


def _context_tar(files: list[SandboxFile]) -> bytes:
    total = io.BytesIO()
    with tarfile.open(fileobj=total, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in files:
            member = tarfile.TarInfo("/".join(plain_parts(file.path)))
            member.mtime = FIXED_TIME
            if file.link is not None:
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, file.link, 0o777
                tar.addfile(member)
            else:
                member.size, member.mode = len(file.data), file.mode & 0o1777
                tar.addfile(member, io.BytesIO(file.data))
    return total.getvalue()


def _cut(api: Any, answer: Any) -> None:
    """End a build by taking its connection away."""
    import socket

    with contextlib.suppress(*_BROKEN_OFF):
        sock = api._get_raw_response_socket(answer)
        getattr(sock, "_sock", sock).shutdown(socket.SHUT_RDWR)


def _note(event: dict[str, Any], lines: list[str]) -> None:
    text = event.get("stream") or event.get("status") or event.get("error") or ""
    lines += [line for line in str(text).splitlines() if line.strip()]
    dropped = lines[: -4 * _LOG_LINES]
    del lines[: len(dropped)]
    steps = [line for line in dropped if line.startswith("Step ")]
    if steps and not any(line.startswith("Step ") for line in lines):
        lines.insert(0, steps[-1])


def _failure(event: dict[str, Any], lines: list[str]) -> SandboxError:
    step = next((line for line in reversed(lines) if line.startswith("Step ")), "")
    message = one_line(event["error"], 300)
    where = f" at {one_line(step, 160)}" if step else ""
    for line in reversed([*lines[-_LOG_LINES:], message]):
        is_of_the_file = line.startswith(("Step ", "The command "))
        if not is_of_the_file and _NOT_THE_BUNDLES.search(line):
            return SandboxUnavailable(
                f"the image could not be built now{where}: {one_line(line, 200)}"
            )
    return ImageBuildFailed(
        f"the image does not build{where}: {message}", "\n".join(lines[-_LOG_LINES:])
    )


def _split(name: str) -> tuple[str, str | None]:
    """A repository and its tag or digest; `latest` when the name says neither."""
    if "@" in name:
        repository, _at, digest = name.partition("@")
        return repository, digest
    head, colon, tag = name.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (name, "latest")


def _image(
    spec: ImageSpec, digest: str, found: dict[str, Any], seconds: float, *, was_cached: bool
) -> Image:
    config = found.get("Config") or {}
    values: dict[str, str] = {}
    for pair in config.get("Env") or []:
        name, _equals, value = pair.partition("=")
        values[name] = value
    return Image(
        digest=digest,
        backend=BACKEND,
        ref=found["Id"],
        workdir=spec.workdir or config.get("WorkingDir") or "/",
        env=tuple((values | dict(spec.env)).items()),
        user=config.get("User") or None,
        build_seconds=seconds,
        was_cached=was_cached,
    )


def _again(image: Image) -> Image:
    from dataclasses import replace

    return replace(image, was_cached=True)
