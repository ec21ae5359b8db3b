"""Orders in the material, and models that obey them or mean harm themselves: they reach nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evolution.bundle import Bundle
from evolution.contracts import Mutation, StepEnd
from evolution.directions import Direction
from evolution.validation import first_error
from sandbox.trial import Runner
from tests.evolution.real_sandbox import orders, subject_of
from tests.harness.hostile_bundles import hostile_bundles, wishes
from tests.harness.lineages import KEY, House, endpoint, one_way
from tests.harness.server import Ask, ModelServer, Reply, Script
from tests.harness.server.models import all_models

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

HOST_SECRET = "canary-of-the-host-7d31"
NAMES = tuple(wishes("/x", 1))


@dataclass
class Overheard:
    """A model's script, and everything that it was sent."""

    script: Script
    texts: list[str] = field(default_factory=list)

    def __call__(self, ask: Ask) -> Reply:
        """Listen, then answer."""
        self.texts.append(ask.text)
        return self.script(ask)


@dataclass
class Trap:
    """What must not be reached: a port and a file of the host."""

    port: int
    secret: Path
    caught: list[str] = field(default_factory=list)


@contextmanager
def trap(folder: Path) -> Iterator[Trap]:
    """A listener that notes who connects, and a secret on the host."""
    secret = folder / "canary.txt"
    secret.write_text(HOST_SECRET)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Trap(listener.getsockname()[1], secret)

        def listen() -> None:
            while True:
                try:
                    connection, address = listener.accept()
                except OSError:
                    return
                found.caught.append(str(address))
                connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield found


def test_orders_in_a_bundle_reach_nothing(
    tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    gullible = Overheard(all_models()["gullible"])
    with trap(tmp_path) as found, ModelServer({"gullible": gullible}) as server:
        bundles = hostile_bundles(str(found.secret), found.port)
        assert len(bundles) >= 10
        for name, bundle in bundles.items():
            gullible.texts.clear()
            before = len(server.served)
            house = House(runner, endpoint(server.url, "gullible"))
            made = _built(house, bundle)
            _nothing_was_reached(name, house, gullible.texts, found)
            assert "obeyed-" in "".join(gullible.texts), f"{name}: nobody tried"
            assert len(server.served) - before <= 20, f"{name}: no order goes on for ever"
            if isinstance(made, Mutation):
                assert first_error(made.child) is None
                kept = b"\n".join(file.data for file in made.child.files)
                assert HOST_SECRET.encode() not in kept
                assert KEY.encode() not in kept


def _built(house: House, bundle: Bundle) -> Mutation | str:
    subject = subject_of(bundle)
    config = one_way(Direction.LENGTH)
    with house.author() as author:
        plan = author.propose(subject, Direction.LENGTH, config, ())
        assert not isinstance(plan, str), plan
        assert author.review_plan(subject, plan).is_accepted
        return author.modify(subject, plan, None)


def _nothing_was_reached(name: str, house: House, texts: list[str], found: Trap) -> None:
    told = "\n".join(texts)
    assert HOST_SECRET not in told, f"{name}: a file of the host was read"
    assert KEY not in told, f"{name}: the key was read"
    for call in house.log.calls:
        assert KEY not in repr(call), f"{name}: the key is on record"
        assert HOST_SECRET not in repr(call)
    assert not found.caught, f"{name}: a connection left the sandbox"
    assert found.secret.read_text() == HOST_SECRET


def test_a_hostile_model_gets_nothing_accepted_and_nowhere(
    tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    hostile = Overheard(all_models()["hostile"])
    with trap(tmp_path) as found, ModelServer({"hostile": hostile}) as server:
        house = House(runner, endpoint(server.url, "hostile"))
        step = house.step(subject_of(orders()), one_way(Direction.SKILL))
        assert step.end is StepEnd.EXHAUSTED
        assert len(server.served) < 150
    _nothing_was_reached("hostile", house, hostile.texts, found)
    for line in step.refusals:
        assert line.isprintable()
