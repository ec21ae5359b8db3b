"""A recorded step comes out the same again, without a sandbox."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from evolution.authors.procedural import ProceduralAuthor
from evolution.contracts import StepConfig, StepEnd
from evolution.directions import Direction
from evolution.memory import MemoryJournal
from evolution.recording import (
    NotRecorded,
    Recording,
    decode,
    encode,
    record_step,
    replay,
)
from tests.evolution.toy_world import ToyRunner, three_operators, toy_subject

CONFIG = StepConfig(seed=11, directions=(Direction.SKILL, Direction.LENGTH), max_repairs=2)


def recorded(journal: MemoryJournal | None = None) -> Recording:
    author = ProceduralAuthor(three_operators(skill=9))
    result, recording = record_step(
        toy_subject(), author, ToyRunner(), journal or MemoryJournal(), CONFIG
    )
    assert result.end is StepEnd.ACCEPTED
    assert len(result.attempts) > 1
    return recording


def test_a_recording_survives_json_and_gives_the_same_child() -> None:
    recording = recorded()
    back = decode(encode(recording))
    assert back == recording
    again = replay(back)
    assert again.accepted is not None
    assert again.accepted.mutation.child.digest == recording.child_digest != ""


def test_a_deterministic_author_decides_alike_in_the_replay() -> None:
    recording = recorded()
    again = replay(recording, ProceduralAuthor(three_operators(skill=9)))
    assert again.accepted is not None
    assert again.accepted.mutation.child.digest == recording.child_digest


def test_what_a_log_remembered_is_part_of_the_recording() -> None:
    journal = MemoryJournal()
    first = recorded(journal)
    second = recorded(journal)
    again = replay(second)
    assert again.accepted is not None
    assert again.accepted.mutation.child.digest == first.child_digest


def test_a_replay_fails_by_name_when_a_trial_is_not_recorded() -> None:
    recording = recorded()
    cut = replace(recording, trials=recording.trials[:-1])
    with pytest.raises(NotRecorded, match=r"no trial [0-9a-f]{12} of solver"):
        replay(cut)


def test_another_author_leaves_the_recorded_way_by_name() -> None:
    with pytest.raises(NotRecorded):
        replay(recorded(), ProceduralAuthor(three_operators(skill=2)))


def test_a_recording_of_another_shape_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"author": "procedural"}')
