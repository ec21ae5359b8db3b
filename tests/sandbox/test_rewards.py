"""Rewards are read strictly, CTRF reports tolerantly."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.contracts import SandboxFile
from sandbox.rewards import (
    CTRF_CAP_BYTES,
    REWARD_JSON,
    REWARD_TEXT,
    InvalidReward,
    read_checks,
    read_rewards,
)


def _text(data: bytes) -> list[SandboxFile]:
    return [SandboxFile(REWARD_TEXT, data)]


def _json(data: bytes) -> list[SandboxFile]:
    return [SandboxFile(REWARD_JSON, data)]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"1", 1.0),
        (b"0\n", 0.0),
        (b" +1.50e0 \r\n", 1.5),
        (b"-.5", -0.5),
        (b"1.", 1.0),
        (b"\t1e-3", 0.001),
    ],
)
def test_plain_numbers_are_taken(data: bytes, value: float) -> None:
    assert read_rewards(_text(data)) == (("reward", value),)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b" \n", b"nan", b"NaN", b"inf", b"-Infinity", b"1e999", b"1_0", b"0x1", b"true"),
        *(b"1 1", b"1,0", b"1\n0", b"\xef\xbb\xbf1", "١".encode(), b"1\0", b"\xff", b"1\x0b"),
        *(b"[1]", b'"1"', b"one", b"--1", b".", b"1e", b"1.0f", b"\xc2\xa01"),
    ],
)
def test_anything_else_is_no_reward(data: bytes) -> None:
    with pytest.raises(InvalidReward):
        read_rewards(_text(data))


@pytest.mark.parametrize(
    ("data", "rewards"),
    [
        (b'{"reward": 1}', (("reward", 1.0),)),
        (b'{"quality": 0.25}', (("quality", 0.25),)),
        (b' {"a": 2, "reward": -1.5}\n', (("a", 2.0), ("reward", -1.5))),
    ],
)
def test_flat_objects_of_numbers_are_taken(
    data: bytes, rewards: tuple[tuple[str, float], ...]
) -> None:
    assert read_rewards(_json(data)) == rewards


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"1", b"[1]", b"{}", b"null", b'"1"', b"{", b'{"reward": true}', b"\xff{}"),
        *(b'{"reward": null}', b'{"reward": "1"}', b'{"reward": [1]}', b'{"reward": {"a": 1}}'),
        *(b'{"reward": NaN}', b'{"reward": Infinity}', b'{"reward": -Infinity}'),
        *(b'{"reward": 1e999}', b'{"reward": 1, "reward": 0}', b'{"reward": 1} {"reward": 1}'),
        *(b'{"a": 1, "b": 1}', b"[" * 100_000, b'{"reward": ' + b"9" * 400 + b"}"),
    ],
)
def test_other_json_is_no_reward(data: bytes) -> None:
    with pytest.raises(InvalidReward):
        read_rewards(_json(data))


def test_two_files_must_agree() -> None:
    assert read_rewards([*_text(b"1.0"), *_json(b'{"reward": 1}')]) == (("reward", 1.0),)
    assert read_rewards([*_text(b"1"), *_json(b'{"only": 1}')]) == (("only", 1.0),)
    for text, other in ((b"1", b'{"reward": 0}'), (b"nan", b'{"reward": 1}'), (b"1", b"")):
        with pytest.raises(InvalidReward):
            read_rewards([*_text(text), *_json(other)])


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([], "no reward"),
        ([SandboxFile("/logs/verifier/rewards.json", b"{}")], "no reward"),
        ([SandboxFile(REWARD_TEXT, link="/app/mine")], "link"),
        ([SandboxFile(f"{REWARD_TEXT}/inside", b"1")], "folder"),
        ([SandboxFile(REWARD_TEXT, b" " * 70_000 + b"1")], "64 KiB"),
        ([*_text(b"1"), SandboxFile(REWARD_JSON, link="x")], "link"),
    ],
)
def test_what_is_no_plain_file_is_no_reward(files: list[SandboxFile], reason: str) -> None:
    with pytest.raises(InvalidReward, match=reason):
        read_rewards(files)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_survives_both_files(value: float) -> None:
    text = read_rewards(_text(repr(value).encode()))
    assert text == read_rewards(_json(json.dumps({"reward": value}).encode()))
    assert text == (("reward", value),)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_finite_reward_or_a_refusal(data: bytes) -> None:
    for files in (_text(data), _json(data)):
        try:
            rewards = read_rewards(files)
        except InvalidReward:
            continue
        assert rewards
        assert all(math.isfinite(value) for _key, value in rewards)


@given(
    st.binary(max_size=300)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["results", "tests", "name", "status", "x"]), inner)
        ),
        max_leaves=20,
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_report_gives_checks_or_a_note(data: bytes) -> None:
    checks, note = read_checks(data)
    assert checks or note or b"[]" in data
    assert all(check.name and "\0" not in check.name for check in checks)


def test_checks_are_read_with_their_words() -> None:
    tests = [
        {"name": "a", "status": "passed", "duration": 3},
        {"name": "b", "status": "failed", "message": "why\0\ud800"},
        {"name": "c", "status": "exploded"},
        {"status": "passed"},
        "nonsense",
    ]
    checks, note = read_checks(json.dumps({"results": {"tests": tests}}).encode())
    assert [(c.name, c.status, c.is_passed) for c in checks] == [
        ("a", "passed", True),
        ("b", "failed", False),
        ("c", "other", False),
    ]
    assert checks[1].message == "why?"
    assert note == "ctrf.json: 5 tests, 3 read"


def test_a_report_that_is_too_large_is_not_read() -> None:
    assert read_checks(b" " * (CTRF_CAP_BYTES + 1)) == (
        (),
        "ctrf.json is larger than 4 MiB: no checks were read",
    )
