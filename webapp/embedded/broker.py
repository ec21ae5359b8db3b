"""The embedded broker: a folder per queue, a file per message. A doorbell, not a memory.

What has to be done is a row in the database; a message only says "look". A lost message is sent
again by the beat job, so nothing here is durable on purpose, and a message counts as taken once its
file is gone. Unlike kombu's own filesystem transport, a message appears whole or not at all, queues
need no control files, and two readers never get the same message.

The folder comes from `broker_transport_options["folder"]`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any
from urllib.parse import quote

from kombu.exceptions import ChannelError
from kombu.transport import virtual

POLL_SECONDS = 0.1  # the latency of an idle queue


class Channel(virtual.Channel):
    """Moves messages between a connection and the folder."""

    supports_fanout = False
    do_restore = True

    @property
    def folder(self) -> Path:
        """Where the queues live."""
        client: Any = self.connection.client
        options: dict[str, Any] = client.transport_options or {}
        return Path(options["folder"])

    def _queue_folder(self, queue: str) -> Path:
        return self.folder / quote(queue, safe="")

    def _new_queue(self, queue: str, **_: Any) -> None:
        self._queue_folder(queue).mkdir(parents=True, exist_ok=True, mode=0o700)

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return self._queue_folder(queue).is_dir()

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        folder = self._queue_folder(queue)
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
        draft = folder / f".{name}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_text(json.dumps(message))
            draft.rename(folder / f"{name}.json")
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise ChannelError(f"cannot write a message to {folder}: {error.strerror}") from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        folder = self._queue_folder(queue)
        for name in _messages(folder):
            taken = folder / f".taken-{name}"
            try:
                (folder / name).rename(taken)  # only one reader succeeds
                text = taken.read_text()
                taken.unlink()
                message: dict[str, Any] = json.loads(text)
            except (FileNotFoundError, ValueError):
                continue
            return message
        raise Empty

    def _size(self, queue: str) -> int:
        return len(_messages(self._queue_folder(queue)))

    def _purge(self, queue: str) -> int:
        names = _messages(self._queue_folder(queue))
        for name in names:
            (self._queue_folder(queue) / name).unlink(missing_ok=True)
        return len(names)

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        shutil.rmtree(self._queue_folder(queue), ignore_errors=True)


class Transport(virtual.Transport):
    """kombu's way in: `broker_url = "ratchet-folder://"` once the alias is registered."""

    Channel = Channel
    polling_interval = POLL_SECONDS
    default_port = 0
    driver_type = "ratchet-folder"
    driver_name = "ratchet-folder"
    implements = virtual.Transport.implements.extend(
        asynchronous=False, exchange_type=frozenset(["direct"])
    )

    def driver_version(self) -> str:
        return "1"


def purge(folder: Path) -> int:
    """Drop every message that waits in a broker folder; how many there were."""
    queues = [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
    count = 0
    for queue in queues:
        for entry in queue.iterdir():  # drafts of killed writers too; the folders stay
            count += not entry.name.startswith(".")
            entry.unlink(missing_ok=True)
    return count


def _messages(folder: Path) -> list[str]:
    """The names of whole messages, oldest first."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []
