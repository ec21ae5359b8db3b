"""A lineage advances when, and only when, more than six of eight rollouts pass."""

from __future__ import annotations

import msgspec
import pytest

from evolution.scheduling.lineage_scheduler import (
    Rules,
    Schedule,
    next_environment,
    open_positions,
    report,
    start,
)

LINEAGES = [("logs", [["s"], ["a", "b"], [], ["c"]]), ("ledger", [["t"]])]


def rollouts(passes: int, of: int = 8) -> list[float]:
    return [1.0] * passes + [0.0] * (of - passes)


@pytest.mark.parametrize(("passes", "following"), [(6, "s"), (7, "a"), (8, "a"), (0, "s")])
def test_the_threshold_is_strict(passes: int, following: str) -> None:
    assert next_environment(report(start(LINEAGES), "s", rollouts(passes))) == following


def test_instances_come_before_generations_and_empty_ones_are_left_out() -> None:
    schedule, seen = start(LINEAGES), []
    while (environment := next_environment(schedule)) is not None:
        seen.append(environment)
        schedule = report(schedule, environment, rollouts(8))
    assert seen == ["s", "a", "b", "c", "t"]
    assert open_positions(schedule) == ()


def test_a_group_may_come_in_pieces_and_nothing_beyond_it_counts() -> None:
    schedule = report(start(LINEAGES), "s", rollouts(4, of=4))
    assert next_environment(schedule) == "s"
    schedule = report(schedule, "s", [*rollouts(4, of=4), *rollouts(0)])
    assert next_environment(schedule) == "a"
    assert schedule.positions[0].attempts == 0


def test_a_partial_reward_is_no_pass() -> None:
    assert next_environment(report(start(LINEAGES), "s", [0.9] * 8)) == "s"


def test_an_environment_that_is_not_active_is_refused() -> None:
    with pytest.raises(ValueError, match="no lineage has environment 'a' active"):
        report(start(LINEAGES), "a", rollouts(8))


def test_rotation_and_parking_are_off_unless_asked_for() -> None:
    schedule = start(LINEAGES)
    for _ in range(5):
        schedule = report(schedule, "s", rollouts(0))
    assert next_environment(schedule) == "s"

    rules = Rules(is_rotating=True, park_after=2)
    turning = start(LINEAGES, rules)
    seen = []
    for _ in range(3):
        environment = str(next_environment(turning))
        seen.append(environment)
        turning = report(turning, environment, rollouts(0))
    assert seen == ["s", "t", "s"]
    assert [position.lineage for position in open_positions(turning)] == ["ledger"]


def test_a_schedule_survives_storage() -> None:
    schedule = report(start(LINEAGES), "s", rollouts(3, of=5))
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule


def test_a_lineage_without_environments_is_refused() -> None:
    with pytest.raises(ValueError, match="'empty' has no environment"):
        start([("empty", [[], []])])
