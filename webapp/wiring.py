"""The composition root: the one place where concrete back-ends and authors are named.

A back-end is made when a trial first needs it, and lives as long as the process.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from evolution.authors.procedural import ProceduralAuthor
from evolution.llm.calls import CallLog
from evolution.ports import Author
from sandbox import reaper
from sandbox.backends import bubblewrap
from sandbox.base import Backend, ImageSource
from sandbox.choice import ChoosingRunner, LateImages, SandboxChoice, can_start
from sandbox.errors import SandboxError
from sandbox.findings import Finding
from sandbox.packing import Capacity, Queue
from sandbox.place_files import occupancy as read_occupancy
from sandbox.places import Places
from sandbox.toolchain import Toolchain
from sandbox.trial import Runner

if TYPE_CHECKING:
    from sandbox.backends.docker import DockerBackend
    from webapp.models import Errand, EvolutionStep
    from webapp.services.errands import Done

ENGINE_SECONDS = 5.0
"""How long an engine that answered is believed to be there."""

PRUNE_SECONDS = 600.0
"""How often what lies in the caches is looked through."""

_lock = threading.RLock()
_seen: dict[str, float] = {}
"""When something was found to work, by its name."""


def _home() -> Path:
    return Path(settings.RATCHET_HOME)


def _cache() -> Path:
    return _home() / "cache"


@lru_cache(maxsize=1)
def _places() -> Places:
    """The places of this machine, the same for all back-ends and processes."""
    return Places(_home() / "sandboxes" / "places")


@lru_cache(maxsize=1)
def _make_docker() -> DockerBackend:
    from sandbox.backends.docker import DockerBackend

    return DockerBackend(
        _home() / "sandboxes",
        _cache(),
        places=_places(),
        runtime=settings.RATCHET_DOCKER_RUNTIME or None,
    )


def _docker() -> DockerBackend:
    with _lock:
        return _make_docker()


def _make_bubblewrap(images: ImageSource | None) -> Backend:
    return bubblewrap.BubblewrapBackend(
        _home() / "sandboxes", _cache() / "images", images=images, places=_places()
    )


@lru_cache(maxsize=1)
def _make_on_host() -> Backend:
    return _make_bubblewrap(None)


@lru_cache(maxsize=1)
def _make_on_image() -> Backend:
    return _make_bubblewrap(_images())


def _bubblewrap() -> Backend:
    with _lock:
        return _make_on_host()


def _bubblewrap_image() -> Backend:
    with _lock:
        return _make_on_image()


def _images() -> ImageSource:
    """Where root file systems come from that bubblewrap unpacks."""
    if settings.RATCHET_IMAGES:
        from sandbox.backends.tar_images import TarImages

        return TarImages(Path(settings.RATCHET_IMAGES))
    return LateImages(has_engine, _docker)


BACKENDS = {
    SandboxChoice.BUBBLEWRAP: _bubblewrap,
    SandboxChoice.BUBBLEWRAP_IMAGE: _bubblewrap_image,
    SandboxChoice.DOCKER: _docker,
}


def has_engine() -> bool:
    """Whether a Docker engine answers, now or a moment ago."""
    if time.monotonic() - _seen.get("engine", float("-inf")) < ENGINE_SECONDS:
        return True
    from sandbox.backends.docker_engine import Engine

    try:
        Engine(timeout_seconds=3).close()  # asks for the version that both sides speak
    except SandboxError:
        return False
    _seen["engine"] = time.monotonic()
    return True


def can_bubblewrap() -> bool:
    """Whether bubblewrap starts here; tried until it did once."""
    if "bubblewrap" in _seen:
        return True
    try:
        has_started = can_start(_bubblewrap())
    except (SandboxError, OSError):
        return False
    if has_started:
        _seen["bubblewrap"] = time.monotonic()
    return has_started


def runner(party: str = "", choice: str = "") -> ChoosingRunner:
    """Runs trials, each on the back-end that suits it: `choice`, or what RATCHET_SANDBOX says.

    `party` names on whose behalf; see `Backend.start`.
    """
    toolchain = Toolchain(_home() / "toolchain")
    return ChoosingRunner(
        BACKENDS,
        has_engine=has_engine,
        can_bubblewrap=can_bubblewrap,
        choice=SandboxChoice(choice or settings.RATCHET_SANDBOX),
        runner_for=lambda backend: Runner(backend, party=party, toolchain=toolchain),
    )


def probe_sandbox() -> tuple[Finding, ...]:
    """What was found when everything that a sandbox needs here was tried. Never raises."""
    return bubblewrap.probe(_home() / "sandboxes", _cache() / "images")


def probe_docker(bases: Sequence[str] = ()) -> tuple[Finding, ...]:
    """What the Docker engine offers, and which of these images it lacks. Never raises."""
    from sandbox.backends import docker_probe

    return docker_probe.probe(runtime=settings.RATCHET_DOCKER_RUNTIME or None, bases=bases)


def occupancy() -> tuple[Queue, Capacity]:
    """Who holds places on this machine and who waits, and what there is. Raises OSError."""
    machine = _places()
    return read_occupancy(machine.folder), machine.capacity


def image_bytes() -> tuple[int, int]:
    """What bubblewrap's images take on the disk, and what they may take. Raises OSError."""
    from sandbox.backends import pruning

    folder = _cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return pruning.size_of(folder), pruning.default_budget_bytes(folder)


def author_for(step: EvolutionStep, log: CallLog) -> AbstractContextManager[Author]:
    """The author of a step's run, for as long as the step lasts; its calls go into `log`.

    Raises ModelConfigError when its models are not configured in this process.
    """
    if step.run.author == "llm":
        from webapp import model_wiring  # loads the clients of the providers

        return model_wiring.llm_author(step, log)
    return contextlib.nullcontext(ProceduralAuthor())


def carry_out_errand(errand: Errand) -> Done:
    """Do what a person wants, with a model where one is needed; what came of it.

    Raises ModelConfigError when that is not configured in this process.
    """
    from webapp.adapters.hardening import carry_out_hardening
    from webapp.models import ErrandKind

    if errand.kind == ErrandKind.HARDEN:
        return carry_out_hardening(errand, runner("a person"))
    from webapp import model_wiring  # loads the clients of the providers

    return model_wiring.carry_out(errand)


def worker_name() -> str:
    """Who works: host, process, thread."""
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"


def reap() -> None:
    """Remove what no living process owns, and now and then images past their budget."""
    folders = [_home() / "sandboxes"]
    is_time_to_prune = time.monotonic() - _seen.get("pruned", float("-inf")) > PRUNE_SECONDS
    if is_time_to_prune:
        _seen["pruned"] = time.monotonic()
        folders.append(_cache() / "images")
    reaper.reap(*folders)
    if (_cache() / "docker").is_dir() and has_engine():  # an engine that was used, and is there
        from sandbox.backends import docker_reaper

        with contextlib.suppress(SandboxError):  # it went away: the next pass finds the same
            docker_reaper.reap_engine(_cache() if is_time_to_prune else None)
