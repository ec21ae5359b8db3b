"""Reading what a verifier left behind: strictly the reward, tolerantly the CTRF report."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from sandbox.contracts import CheckResult, SandboxFile

REWARD_TEXT = "/logs/verifier/reward.txt"
REWARD_JSON = "/logs/verifier/reward.json"
CTRF = "/logs/verifier/ctrf.json"
REWARD_CAP_BYTES = 64 * 1024
CTRF_CAP_BYTES = 4 * 1024 * 1024
_MAX_CHECKS = 5_000
_MAX_NAME = 300
_MAX_MESSAGE = 2_000

_NUMBER = re.compile(
    rb"[ \t\r\n]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\r\n]*"
)
_STATUSES = frozenset(("passed", "failed", "skipped", "pending", "other"))

Rewards = tuple[tuple[str, float], ...]


class InvalidReward(ValueError):
    """The reward cannot be taken at its word. The message is one line for people."""


def read_rewards(files: Sequence[SandboxFile]) -> Rewards:
    """The rewards from what lies at `REWARD_TEXT` and `REWARD_JSON` (paths absolute).

    Raises InvalidReward when there is none, when it is not a strict finite number (or flat object
    of them), when it is no plain file, too large, or when both files are there and disagree.
    """
    text = _plain_file(files, REWARD_TEXT)
    data = _plain_file(files, REWARD_JSON)
    if text is None and data is None:
        raise InvalidReward("the verifier wrote no reward")
    if data is None:
        return (("reward", _parse_text(text or b"")),)
    rewards = _parse_json(data)
    known = dict(rewards)
    if "reward" not in known and len(known) != 1:
        raise InvalidReward("reward.json: several keys, and none is called 'reward'")
    if text is not None:
        primary = known["reward"] if "reward" in known else next(iter(known.values()))
        if _parse_text(text) != primary:
            raise InvalidReward("reward.txt and reward.json are both there and disagree")
    return rewards


def _plain_file(files: Sequence[SandboxFile], path: str) -> bytes | None:
    name = path.rsplit("/", 1)[-1]
    for file in files:
        if file.path.startswith(f"{path}/"):
            raise InvalidReward(f"{name} is a folder")
        if file.path != path:
            continue
        if file.link is not None:
            raise InvalidReward(f"{name} is a link")
        if len(file.data) > REWARD_CAP_BYTES:
            raise InvalidReward(f"{name} is larger than 64 KiB")
        return file.data
    return None


def _parse_text(data: bytes) -> float:
    if not data.strip():
        raise InvalidReward("reward.txt is empty")
    match = _NUMBER.fullmatch(data)
    value = float(match[1]) if match else math.nan
    if not math.isfinite(value):
        raise InvalidReward(f"reward.txt is not a finite number: {_shown(data)}")
    return value


def _parse_json(data: bytes) -> Rewards:
    try:
        value = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except (UnicodeDecodeError, RecursionError):
        raise InvalidReward("reward.json is no JSON") from None
    except json.JSONDecodeError as error:
        raise InvalidReward(f"reward.json is no JSON: {error.msg}") from None
    if not isinstance(value, dict) or not value:
        raise InvalidReward("reward.json is no object with rewards")
    rewards: list[tuple[str, float]] = []
    for key, entry in value.items():
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise InvalidReward(f"reward.json: {key[:80]!r} is not a number")
        try:
            number = float(entry)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InvalidReward(f"reward.json: {key[:80]!r} is not finite")
        rewards.append((key, number))
    return tuple(rewards)


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _value in items}) != len(items):
        raise InvalidReward("reward.json: a key is there twice")
    return dict(items)


def _refuse(word: str) -> float:
    raise InvalidReward(f"reward.json: {word} is not a number")


def _shown(data: bytes) -> str:
    return repr(data[:40].decode("utf-8", "replace"))


def read_checks(data: bytes) -> tuple[tuple[CheckResult, ...], str]:
    """The checks of a CTRF report, and a note (empty when all is well) on what was wrong."""
    if len(data) > CTRF_CAP_BYTES:
        return (), "ctrf.json is larger than 4 MiB: no checks were read"
    try:
        tests = json.loads(data.decode())["results"]["tests"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return (), "ctrf.json is no CTRF report: no checks were read"
    if not isinstance(tests, list):
        return (), "ctrf.json has no list of tests: no checks were read"
    checks: list[CheckResult] = []
    for test in tests[:_MAX_CHECKS]:
        name = test.get("name") if isinstance(test, dict) else None
        if not isinstance(name, str) or not name:
            continue
        status, message = test.get("status"), test.get("message")
        checks.append(
            CheckResult(
                _clean(name)[:_MAX_NAME],
                status if isinstance(status, str) and status in _STATUSES else "other",
                _clean(message)[:_MAX_MESSAGE] if isinstance(message, str) else "",
            )
        )
    note = f"ctrf.json: {len(tests)} tests, {len(checks)} read" if len(checks) < len(tests) else ""
    return tuple(checks), note


def _clean(text: str) -> str:
    """No lone surrogate and no NUL: neither can be stored as text."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")
