"""The composition root: the one place where concrete back-ends and authors are named."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from django.conf import settings

from evolution.authors.procedural import ProceduralAuthor
from evolution.ports import Author
from sandbox import reaper
from sandbox.backends import bubblewrap
from sandbox.base import Backend
from sandbox.choice import ChoosingRunner, SandboxChoice, can_start
from sandbox.errors import SandboxError
from sandbox.findings import Finding
from sandbox.toolchain import Toolchain
from sandbox.trial import Runner

_lock = threading.RLock()
_made: dict[SandboxChoice, Backend] = {}
_proved: set[str] = set()


def _home() -> Path:
    return Path(settings.RATCHET_HOME)


def _once(choice: SandboxChoice, make: Callable[[], Backend]) -> Callable[[], Backend]:
    """This process's back-end of that name, made when it is first asked for."""

    def get() -> Backend:
        with _lock:
            if choice not in _made:
                _made[choice] = make()
            return _made[choice]

    return get


def _make_bubblewrap() -> Backend:
    return bubblewrap.BubblewrapBackend(
        runtime_dir=_home() / "sandboxes", cache_dir=_home() / "cache" / "images"
    )


_bubblewrap = _once(SandboxChoice.BUBBLEWRAP, _make_bubblewrap)
BACKENDS = {SandboxChoice.BUBBLEWRAP: _bubblewrap}


def _can_bubblewrap() -> bool:
    """Whether bubblewrap starts here; tried until it did once."""
    with _lock:
        if "bubblewrap" in _proved:
            return True
    try:
        is_well = can_start(_bubblewrap())
    except (SandboxError, OSError):
        return False
    if is_well:
        _proved.add("bubblewrap")
    return is_well


def runner(party: str = "", choice: str = "") -> ChoosingRunner:
    """Runs trials, each on the back-end that suits it: `choice`, or what RATCHET_SANDBOX says.

    `party` names on whose behalf; see `Backend.start`.
    """
    return ChoosingRunner(
        BACKENDS,
        has_engine=lambda: False,
        can_bubblewrap=_can_bubblewrap,
        choice=SandboxChoice(choice or settings.RATCHET_SANDBOX),
        runner_for=lambda backend: Runner(
            backend, party=party, toolchain=Toolchain(_home() / "toolchain")
        ),
    )


def probe_sandbox() -> tuple[Finding, ...]:
    """What was found when everything that a sandbox needs here was tried. Never raises."""
    return bubblewrap.probe(_home() / "sandboxes", _home() / "cache" / "images")


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
    reaper.reap(_home() / "sandboxes", _home() / "cache" / "images")
