"""Who plays the roles decides what comes of a step: yield, repairs, fallbacks, as written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evolution.contracts import StepEnd
from evolution.directions import Direction
from evolution.memory import MemoryJournal
from sandbox.trial import Runner
from tests.evolution.real_sandbox import orders, subject_of
from tests.harness.lineages import QUICK, House, endpoint, one_way
from tests.harness.server import ModelServer
from tests.harness.server.models import all_models
from tests.harness.server.models.sloppy import FLAWS

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]


def test_the_sloppy_one_repairs_what_the_evidence_names(runner: Runner) -> None:
    with ModelServer(all_models()) as server:
        house = House(runner, endpoint(server.url, "sloppy"))
        step = house.step(subject_of(orders()), one_way(Direction.LENGTH))
    failed = [[gate.gate for gate in attempt.verdict.failed] for attempt in step.attempts]
    assert failed == [*([gate] for gate in FLAWS), []]
    assert step.accepted is not None
    assert step.accepted.repair == len(FLAWS)
    assert sum(call.usage.tokens for call in house.calls) == server.told()


def test_the_hopeless_one_falls_back_and_ends_with_nothing(runner: Runner) -> None:
    journal = MemoryJournal()
    with ModelServer(all_models()) as server:
        house = House(runner, endpoint(server.url, "hopeless"))
        both = replace(QUICK, directions=(Direction.LENGTH, Direction.SKILL))
        step = house.step(subject_of(orders()), both, journal)
    assert step.end is StepEnd.EXHAUSTED
    assert step.accepted is None
    assert not step.attempts, "prose alone is sent back before any gate is asked"
    assert [kind for kind, _ in journal.events].count("fallback") == 2
