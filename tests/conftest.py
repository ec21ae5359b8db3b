"""Rails for every test, and what many of them need."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings

from tests.groups import GROUPS, chromium, required

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = pytest.StashKey[list[str]]()

hypothesis.settings.register_profile(
    "house", deadline=None, derandomize=True, database=None, max_examples=60
)
hypothesis.settings.load_profile("house")


# --- what this machine cannot run ---------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = []
    sys.addaudithook(_refuse_the_network)
    try:
        needed = required()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    for group in GROUPS:
        if group.marker in needed and not group.is_here():
            raise pytest.UsageError(f"{group.marker} tests are required: {group.remedy}")


@pytest.hookimpl(trylast=True)  # after -k and -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for group in GROUPS:
        members = [item for item in items if item.get_closest_marker(group.marker)]
        if not members or group.is_here():
            continue
        items[:] = [item for item in items if item not in members]
        config.hook.pytest_deselected(items=members)
        config.stash[LEFT_OUT].append(
            f"left out: {len(members)} {group.marker} tests ({group.remedy})"
        )
    # The browser's driver keeps an event loop running in this thread until the session ends.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of pytest-xdist tells the one that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if hasattr(node, "workeroutput"):  # it has none when it crashed
        node.config.stash[LEFT_OUT] = node.workeroutput["left_out"]


def pytest_terminal_summary(
    terminalreporter: Any,
    config: pytest.Config,
) -> None:
    for line in config.stash[LEFT_OUT]:
        terminalreporter.write_line(line, yellow=True)


def pytest_unconfigure() -> None:
    """End the embedded server, then remove the home of this run."""
    home = os.environ.get("RATCHET_TEST_HOME", "")
    if home and os.environ.get("RATCHET_TEST_OWNER") == str(os.getpid()):
        from webapp.embedded import postgres

        postgres.shared(Path(home)).release()
        shutil.rmtree(home, ignore_errors=True)


# --- rails ----------------------------------------------------------------------------------------

_LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0", "::ffff:127.")


def _refuse_the_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Connections leave this machine in no test; children are on their own."""
    if event != "socket.connect":
        return
    address = arguments[1]
    is_here = not isinstance(address, tuple) or str(address[0]).startswith(_LOOPBACK)
    if not is_here:
        raise PermissionError(f"tests use no network: {address}")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    random.seed(20_26)


# --- homes and processes --------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A fresh RATCHET_HOME for processes that a test starts; its path holds a space."""
    return tmp_path / "a home"


@pytest.fixture
def command_environment(home: Path) -> dict[str, str]:
    """The environment of a `manage.py` process on its own `home`."""
    return _environment(home)


def _environment(home: Path) -> dict[str, str]:
    ours = ("RATCHET_", "DJANGO_", "EMBEDDED_", "PYTEST_", "DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "RATCHET_HOME": str(home), "EMBEDDED_POSTGRES_IS_DURABLE": "off"}


def worker_environment() -> dict[str, str]:
    """What worker processes have to see to work on the test database and the test home."""
    from django.db import connection

    environment = _environment(Path(settings.RATCHET_HOME))
    if settings.IS_DATABASE_EMBEDDED:
        environment["EMBEDDED_POSTGRES_DATABASE"] = connection.settings_dict["NAME"]
    else:
        base = settings.DATABASE_URL.rpartition("/")[0]
        environment["DATABASE_URL"] = f"{base}/{connection.settings_dict['NAME']}"
    return environment


@pytest.fixture
def workers(transactional_db: None, tmp_path: Path) -> Iterator[Any]:
    """One real worker process, a tender and beat, on the test database and the test home.

    What they print is in `workers.log` of the test's folder.
    """
    from webapp.embedded.supervisor import Supervisor, worker_parts

    environment = worker_environment()
    with (
        (tmp_path / "workers.log").open("w", buffering=1) as log,
        Supervisor(
            worker_parts(1), write=lambda line: log.write(f"{line}\n"), environment=environment
        ) as supervisor,
    ):
        yield supervisor


# --- the browser ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The machine's own Chromium, which asks nobody on the network for anything."""
    quiet = ("background-networking", "component-update", "sync", "extensions", "gpu", "quic")
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    return {**browser_type_launch_args, "executable_path": chromium(), "args": arguments}
