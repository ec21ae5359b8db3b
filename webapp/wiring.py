"""The composition root: the one place where concrete back-ends and authors are named."""

from __future__ import annotations

import os
import socket
import threading
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from evolution.authors.procedural import ProceduralAuthor
from evolution.ports import Author
from sandbox import reaper
from sandbox.backends import bubblewrap
from sandbox.base import Backend
from sandbox.findings import Finding
from sandbox.trial import Runner

_lock = threading.Lock()


@lru_cache(maxsize=1)
def _backend() -> Backend:
    home = Path(settings.RATCHET_HOME)
    return bubblewrap.BubblewrapBackend(
        runtime_dir=home / "sandboxes", cache_dir=home / "cache" / "images"
    )


def backend() -> Backend:
    """This process's way to run sandboxes."""
    with _lock:
        return _backend()


def probe_sandbox() -> tuple[Finding, ...]:
    """What was found when everything that a sandbox needs here was tried. Never raises."""
    home = Path(settings.RATCHET_HOME)
    return bubblewrap.probe(home / "sandboxes", home / "cache" / "images")


def runner() -> Runner:
    """Runs trials on this process's back-end."""
    return Runner(backend())


def author(name: str = "procedural") -> Author:
    """The author of that name. Raises ValueError for one that is not there."""
    if name != "procedural":
        raise ValueError(f"no author {name!r}; the one that needs no model is 'procedural'")
    return ProceduralAuthor()


def worker_name() -> str:
    """Who works: host, process, thread."""
    return f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"


def reap() -> None:
    """Remove sandboxes that no living process owns."""
    home = Path(settings.RATCHET_HOME)
    reaper.reap(home / "sandboxes", home / "cache" / "images")
