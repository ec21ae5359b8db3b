"""The embedded broker: whole messages, each to one reader, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection

from webapp.embedded import broker


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Connection]:
    with connect(tmp_path / "a broker") as connection:
        yield connection


def connect(folder: Path) -> Connection:
    return Connection(
        "ratchet-folder://localhost",
        transport="webapp.embedded.broker:Transport",
        transport_options={"folder": str(folder)},
    )


def test_messages_come_out_once_and_in_order(link: Connection) -> None:
    queue = link.SimpleQueue("jobs")
    for number in range(5):
        queue.put({"id": number})
    assert queue.qsize() == 5
    taken = []
    for _ in range(5):
        message = queue.get(timeout=2)
        message.ack()
        taken.append(message.payload["id"])
    assert taken == list(range(5))
    with pytest.raises(Empty):
        queue.get(timeout=0.2)


def test_queues_are_apart_whatever_their_names(link: Connection) -> None:
    first, second = link.SimpleQueue("a/../b"), link.SimpleQueue("b")
    first.put({"for": "first"})
    with pytest.raises(Empty):
        second.get(timeout=0.2)
    assert first.get(timeout=2).payload == {"for": "first"}


def test_an_unfinished_or_broken_file_is_no_message(link: Connection, tmp_path: Path) -> None:
    queue = link.SimpleQueue("jobs")
    queue.put({"id": 1})
    folder = tmp_path / "a broker" / "jobs"
    (folder / ".00-draft").write_text("{")
    (folder / "00-broken.json").write_text("{")
    assert queue.get(timeout=2).payload == {"id": 1}


def test_two_readers_never_take_the_same_message(link: Connection, tmp_path: Path) -> None:
    queue = link.SimpleQueue("jobs")
    for number in range(60):
        queue.put({"id": number})
    taken: list[int] = []

    def read() -> None:
        with connect(tmp_path / "a broker") as other:
            mine = other.SimpleQueue("jobs")
            try:
                while True:
                    message = mine.get(timeout=0.5)
                    message.ack()
                    taken.append(message.payload["id"])
            except Empty:
                return

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert sorted(taken) == list(range(60))


def test_purging_leaves_nothing_and_counts_messages_only(link: Connection, tmp_path: Path) -> None:
    queue = link.SimpleQueue("jobs")
    queue.put({"id": 1})
    queue.put({"id": 2})
    folder = tmp_path / "a broker"
    (folder / "jobs" / ".draft").write_text("{")
    assert broker.purge(folder) == 2
    assert not list((folder / "jobs").iterdir())
    assert broker.purge(tmp_path / "missing") == 0
