"""What works on this machine, and what to do about what does not. Read by `manage.py doctor`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from queue import Empty

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from kombu.exceptions import KombuError

from evolution.plain_text import plain
from sandbox.choice import SandboxChoice
from sandbox.errors import SandboxError
from webapp import wiring

BASES = ("debian:bookworm-slim",)
"""What the bundled seeds are built from."""
LOW_BYTES, TOO_LOW_BYTES = 2 << 30, 256 << 20
OLDEST_POSTGRES = 15
TOO_SLOW_SECONDS = 3


class Level(StrEnum):
    """How bad it is. The main job runs without what is at `warn`, and not with a `fail`."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `remedy` is empty when there is nothing to do."""

    name: str
    level: Level
    text: str
    remedy: str = ""


def diagnose() -> Iterator[Finding]:
    """Every check, in the order in which they build on each other."""
    checks: tuple[Callable[[], Finding], ...] = (
        check_python,
        check_disk,
        check_database,
        check_broker,
        check_bubblewrap,
        check_docker,
        check_images,
        check_sandbox,
        check_places,
    )
    for found in chain((check() for check in checks), check_models()):
        # Paths and answers of others may hold anything; a terminal and a log are shown none of it.
        yield replace(found, text=plain(found.text), remedy=plain(found.remedy))


def check_python() -> Finding:
    """The interpreter that runs us."""
    return Finding("python", Level.OK, f"{sys.version.split()[0]}, {sys.prefix}")


def check_disk() -> Finding:
    """Whether the home can be written, and holds enough for a while."""
    home = Path(settings.RATCHET_HOME)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"x" * 4096)
        free = shutil.disk_usage(home).free
    except OSError as error:
        remedy = "make it writable, free space, or set RATCHET_HOME to another folder"
        return Finding("disk", Level.FAIL, f"{home}: {error.strerror}", remedy)
    text = f"{free / (1 << 30):.1f} GiB free for {home}"
    if free < TOO_LOW_BYTES:
        return Finding("disk", Level.FAIL, text, "free some space")
    if free < LOW_BYTES:
        return Finding("disk", Level.WARN, text, "free some space before a long run")
    return Finding("disk", Level.OK, text)


def check_database() -> Finding:
    """Whether PostgreSQL answers, is new enough, and has our tables."""
    kind = "embedded" if settings.IS_DATABASE_EMBEDDED else "from DATABASE_URL"
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version_num')::int,"
                " current_setting('server_encoding')"
            )
            version, encoding = cursor.fetchone()
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        remedy = (
            "see the reason; or set DATABASE_URL to a server"
            if settings.IS_DATABASE_EMBEDDED
            else "start that server, or correct DATABASE_URL; unset it for the embedded one"
        )
        return Finding("database", Level.FAIL, f"{kind}: {_one_line(error)}", remedy)
    text = f"PostgreSQL {version // 10_000}.{version % 10_000}, {kind}"
    if version // 10_000 < OLDEST_POSTGRES:
        return Finding("database", Level.FAIL, text, f"PostgreSQL {OLDEST_POSTGRES} or newer")
    if encoding != "UTF8":
        remedy = "create the database with ENCODING 'UTF8' TEMPLATE template0"
        return Finding("database", Level.FAIL, f"{text}, encoding {encoding}", remedy)
    if plan:
        text += f", {len(plan)} migrations to come"
        return Finding("database", Level.WARN, text, "manage.py migrate (demo and serve do it too)")
    return Finding("database", Level.OK, text)


def check_broker() -> Finding:
    """Whether a message goes in and comes out again, on a queue of its own."""
    from webapp.celery import app

    kind = "embedded" if settings.IS_BROKER_EMBEDDED else "from CELERY_BROKER_URL"
    started = time.monotonic()
    try:
        with app.connection_for_write(connect_timeout=TOO_SLOW_SECONDS) as link:
            link.ensure_connection(max_retries=1, timeout=TOO_SLOW_SECONDS)
            queue = link.SimpleQueue(f"doctor-{os.getpid()}")
            queue.put({"ping": 1})
            queue.get(timeout=TOO_SLOW_SECONDS).ack()
            queue.queue.delete()
            queue.close()
    except (OSError, KombuError, Empty) as error:
        remedy = (
            f"may {settings.BROKER_FOLDER} be written?"
            if settings.IS_BROKER_EMBEDDED
            else "start that broker, or correct CELERY_BROKER_URL; unset it for the embedded one"
        )
        return Finding("broker", Level.FAIL, f"{kind}: {_one_line(error)}", remedy)
    text = f"{kind}, there and back in {(time.monotonic() - started) * 1000:.0f} ms"
    return Finding("broker", Level.OK, text)


def check_bubblewrap() -> Finding:
    """Whether a sandbox really starts and runs a command; without it everything needs Docker."""
    found = wiring.probe_sandbox()
    bad = [one for one in found if not one.is_ok]
    if bad:
        text = "; ".join(f"{one.name}: {_on_one_line(one.detail)}" for one in bad)
        remedy = "; ".join(one.remedy for one in bad if one.remedy)
        needs = settings.RATCHET_SANDBOX.startswith("bubblewrap") or not wiring.has_engine()
        return Finding("bubblewrap", Level.FAIL if needs else Level.WARN, text, remedy)
    text = "; ".join(f"{one.name}: {one.detail}" for one in found if one.name != "limits")
    return Finding("bubblewrap", Level.OK, text)


def check_docker() -> Finding:
    """Whether a Docker engine answers and can do what sandboxes need."""
    found = wiring.probe_docker(BASES)
    bad = [one for one in found if not one.is_ok]
    level = Level.FAIL if settings.RATCHET_SANDBOX == SandboxChoice.DOCKER else Level.WARN
    if found[0] in bad:
        remedy = "needed only for environments that bring their own image: start one"
        return Finding("docker", level, "no engine answers", f"{remedy}, or set DOCKER_HOST")
    text = "; ".join(f"{one.name} {_on_one_line(one.detail)}" for one in found)
    remedy = "; ".join(one.remedy for one in bad if one.remedy)
    is_fatal = any(one.name in ("limits", "runtime") for one in bad)
    return Finding("docker", (level if is_fatal else Level.WARN) if bad else Level.OK, text, remedy)


def check_images() -> Finding:
    """Whether images can be unpacked for bubblewrap, and what they take on the disk."""
    if settings.RATCHET_IMAGES:
        folder = Path(settings.RATCHET_IMAGES)
        if not folder.is_dir():
            remedy = "make that folder, or correct RATCHET_IMAGES"
            return Finding("images", Level.WARN, f"no folder of tars at {folder}", remedy)
        source = f"tars in {folder}"
    elif wiring.has_engine():
        source = "from Docker"
    else:
        source = "no source (no engine answers, RATCHET_IMAGES is not set)"
    try:
        used, most = wiring.image_bytes()
    except OSError as error:
        return Finding("images", Level.WARN, _one_line(error), "may the home be written?")
    text = f"{source}; {used / (1 << 30):.1f} of {most / (1 << 30):.1f} GiB of the cache are used"
    return Finding("images", Level.OK, text)


def check_sandbox() -> Finding:
    """How sandboxes are chosen, and what that means here."""
    choice = SandboxChoice(settings.RATCHET_SANDBOX)
    if choice is not SandboxChoice.AUTO:
        return Finding("sandbox", Level.OK, f"RATCHET_SANDBOX={choice}: that one for every trial")
    can = wiring.can_bubblewrap()
    docker = "docker" if wiring.has_engine() else ""
    can_unpack = can and (docker or settings.RATCHET_IMAGES)
    rows = {
        "those that may use the host's /usr": "bubblewrap" if can else docker,
        "those on their image": "bubblewrap-image" if can_unpack else docker,
        "those with a network": docker,
    }
    text = "; ".join(f"{what}: {name or 'refused'}" for what, name in rows.items())
    return Finding("sandbox", Level.OK if any(rows.values()) else Level.FAIL, f"auto: {text}")


def check_places() -> Finding:
    """How much of this machine sandboxes hold right now, and how many wait."""
    try:
        queue, capacity = wiring.occupancy()
    except (OSError, SandboxError) as error:
        return Finding("places", Level.FAIL, _one_line(error), "may the home be written?")
    cpus = sum(entry.cpus for entry in queue.held)
    memory = sum(entry.memory_bytes for entry in queue.held)
    text = (
        f"{cpus:g} of {capacity.cpus:g} CPUs and {memory / (1 << 30):.1f} of"
        f" {capacity.memory_bytes / (1 << 30):.1f} GiB held by {len(queue.held)} sandboxes;"
        f" {len(queue.waiting)} wait"
    )
    return Finding("places", Level.OK, text)


def check_models() -> Iterator[Finding]:
    """Whether each configured model answers; no key is ever shown."""
    if not settings.RATCHET_MODELS:
        text = "none configured; the procedural author needs none"
        yield Finding("models", Level.OK, text)
        return
    from webapp import model_diagnosis  # loads the clients of the providers

    yield from model_diagnosis.check_models()


def _one_line(error: BaseException) -> str:
    return _on_one_line(str(error)) or type(error).__name__


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
