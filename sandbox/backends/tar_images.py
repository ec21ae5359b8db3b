"""Images that lie in a folder as tars, for a machine without a container engine.

For a prebuilt `docker_image = "registry.example/team/app:1.2"` the folder holds
`registry.example_team_app_1.2.tar`, made by `docker export CONTAINER`, and beside it, if the image
sets anything, `registry.example_team_app_1.2.json`, made by
`docker inspect --format '{{json .Config}}' IMAGE`. For a bundle with a Dockerfile of its own, the
name is the spec's digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sandbox.contracts import Image, ImageSpec
from sandbox.errors import Refused, SandboxUnavailable


class TarImages:
    """The tars of one folder; implements `ImageSource`."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def prepare(self, spec: ImageSpec) -> Image:
        """See `ImageSource.prepare`. Raises Refused when there is no such tar."""
        name = re.sub(r"[^A-Za-z0-9.-]", "_", spec.docker_image or spec.digest)
        path = self.folder / f"{name}.tar"
        try:
            info = path.stat()
        except OSError:
            what = repr(spec.docker_image) if spec.docker_image else "this environment"
            raise Refused(f"there is no image for {what}: {path.name} is missing") from None
        config = self._config(path.with_name(f"{name}.json"))
        content = f"{name} {info.st_size} {info.st_mtime_ns} {config}"
        return Image(
            digest=spec.digest,
            backend="tar",
            ref=f"{name}@{hashlib.sha256(content.encode()).hexdigest()}",
            workdir=spec.workdir or config.get("WorkingDir") or "/",
            env=(*_pairs(config.get("Env") or ()), *spec.env),
            user=config.get("User") or None,
        )

    def _config(self, path: Path) -> dict[str, Any]:
        try:
            config = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SandboxUnavailable(f"{path.name} cannot be read: {error}") from error
        if not isinstance(config, dict):
            raise SandboxUnavailable(f"{path.name} is no image configuration")
        return config

    @contextmanager
    def export(self, image: Image) -> Iterator[IO[bytes]]:
        """See `ImageSource.export`."""
        try:
            stream = (self.folder / f"{image.ref.rpartition('@')[0]}.tar").open("rb")
        except OSError as error:
            raise SandboxUnavailable(f"an image's tar cannot be read: {error}") from error
        with stream:
            yield stream


def _pairs(lines: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = (line.partition("=") for line in lines)
    return tuple((name, value) for name, _equals, value in found)
