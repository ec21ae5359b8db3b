"""Trials that Harbor ran: its job folders, read as they lie on disk, one answer a trial.

jobs/<job>/<trial>/result.json            what came of it
jobs/<job>/<trial>/lock.json              which task, by digest
jobs/<job>/<trial>/agent/trajectory.json  what was done (ATIF)
jobs/<job>/<trial>/agent/*.cast           what the terminal showed
jobs/<job>/<trial>/verifier/test-stdout.txt
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from evolution.loose_json import as_dict, as_list
from evolution.plain_text import plain
from evolution.trials_csv import FIELD_CAP, SOLVER_CAUSES

RESULT_CAP_BYTES = 8 << 20
FILE_CAP_BYTES = 20 << 20
"""A trajectory, cast or output larger than this is left out, and said so."""
DEPTH = 3
"""How far below the given folder trials are looked for: jobs, job, trial."""
TRIAL_CAP = 100_000
COUNT_CAP = 2**53
NUMBER_CAP = 1e300


@dataclass(frozen=True, slots=True)
class HarborTrial:
    """One trial of a job. `counts` is Harbor's own word on whether its reward may be used.

    `harbor_digest` is the content digest of the task, empty where the lock does not say.
    """

    source: str
    solver: str
    task: str
    harbor_digest: str
    is_passed: bool
    counts: bool
    reward: float | None
    cause: str
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    seconds: float | None
    trajectory: bytes
    cast: bytes
    output: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HarborRefusal:
    """A trial's folder that was not taken, and why, in one line."""

    folder: str
    reason: str


class _Unreadable(Exception):
    """A trial is refused; the message is the reason."""


def read_jobs(path: Path) -> Iterator[HarborTrial | HarborRefusal]:
    """Every trial in a job's folder, a folder of jobs, or a trial's own folder, by name."""
    for count, folder in enumerate(_trial_folders(path, DEPTH)):
        if count >= TRIAL_CAP:
            yield HarborRefusal(str(path), f"more than {TRIAL_CAP:,} trials: import job by job")
            return
        try:
            yield _trial(folder)
        except _Unreadable as error:
            yield HarborRefusal(str(folder), str(error))


def _trial_folders(path: Path, depth: int) -> Iterator[Path]:
    """Folders with a trial's result. A job's own result has no trial's name, and is passed over."""
    if (path / "result.json").is_file() and not _is_job(path):
        yield path
        return
    if depth == 0:
        return
    try:
        names = sorted(
            entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)
        )
    except OSError:
        return
    for name in names:
        yield from _trial_folders(path / name, depth - 1)


def _is_job(path: Path) -> bool:
    return any((child / "result.json").is_file() for child in path.iterdir() if child.is_dir())


def _trial(folder: Path) -> HarborTrial:
    body = _json(folder / "result.json")
    agent = as_dict(body.get("agent_info"))
    task = _name(body.get("task_name"), "task_name")
    rewards = as_dict(as_dict(body.get("verifier_result")).get("rewards"))
    reward = _reward(rewards)
    exception = as_dict(body.get("exception_info"))
    cause = plain(str(exception.get("exception_type") or ""))[:60].lower()
    notes: list[str] = []
    contexts = _contexts(body)
    return HarborTrial(
        source=f"{folder.parent.name}/{_name(body.get('trial_name'), 'trial_name')}",
        solver=_solver(agent),
        task=task,
        harbor_digest=_task_digest(folder),
        is_passed=reward is not None and reward >= 1.0,
        counts=_counts(body, reward, cause),
        reward=reward,
        cause=cause,
        input_tokens=_sum(contexts, "n_input_tokens"),
        output_tokens=_sum(contexts, "n_output_tokens"),
        usd=_usd(contexts),
        seconds=_seconds(as_dict(body.get("agent_execution"))),
        trajectory=_file(folder / "agent" / "trajectory.json", notes),
        cast=_cast(folder / "agent", notes),
        output=_file(folder / "verifier" / "test-stdout.txt", notes),
        notes=tuple(notes),
    )


def _counts(body: dict[str, Any], reward: float | None, cause: str) -> bool:
    """Whether the reward says something about the environment; older results do not tell."""
    is_valid = body.get("reward_valid")
    if isinstance(is_valid, bool):
        return is_valid and reward is not None
    return reward is not None and (not cause or cause in SOLVER_CAUSES)


def _solver(agent: dict[str, Any]) -> str:
    model = as_dict(agent.get("model_info"))
    named = "/".join(str(model[key]) for key in ("provider", "name") if model.get(key))
    name = _name(agent.get("name"), "agent_info.name")
    return plain(f"{name} {named}".strip())[:FIELD_CAP]


def _reward(rewards: dict[str, Any]) -> float | None:
    """The reward under the key `reward`, or the only one."""
    value = rewards.get("reward")
    if value is None and len(rewards) == 1:
        value = next(iter(rewards.values()))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Beyond that it is no number that anybody could store: NaN, infinity, hundreds of digits.
    return float(value) if is_number and abs(value) < NUMBER_CAP else None  # type: ignore[arg-type]


def _contexts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What the agent used, of the trial or of each of its steps."""
    if isinstance(body.get("agent_result"), dict):
        return [body["agent_result"]]
    steps = body.get("step_results")
    rows = [as_dict(as_dict(step).get("agent_result")) for step in as_list(steps)]
    return [row for row in rows if row]


def _sum(contexts: list[dict[str, Any]], name: str) -> int | None:
    given = [context.get(name) for context in contexts]
    counts = [count for count in given if isinstance(count, int) and 0 <= count < COUNT_CAP]
    return min(sum(counts), COUNT_CAP) if counts else None


def _usd(contexts: list[dict[str, Any]]) -> float | None:
    costs = [c["cost_usd"] for c in contexts if isinstance(c.get("cost_usd"), int | float)]
    total = sum(costs)
    return float(total) if costs and 0 <= total < 1e8 else None


def _seconds(timing: dict[str, Any]) -> float | None:
    try:
        begun = datetime.fromisoformat(str(timing["started_at"]))
        return max(
            0.0, (datetime.fromisoformat(str(timing["finished_at"])) - begun).total_seconds()
        )
    except (KeyError, ValueError, TypeError):
        return None


def _task_digest(folder: Path) -> str:
    """The task's content digest in hex, from the trial's lock."""
    try:
        lock = _json(folder / "lock.json")
    except _Unreadable:
        return ""
    digest = str(as_dict(lock.get("task")).get("digest") or "").removeprefix("sha256:")
    is_hex = len(digest) == 64 and all(c in "0123456789abcdef" for c in digest)
    return digest if is_hex else ""


def _cast(folder: Path, notes: list[str]) -> bytes:
    try:
        found = sorted(path for path in folder.glob("*.cast"))
    except OSError:
        return b""
    return _file(found[0], notes) if found else b""


def _file(path: Path, notes: list[str]) -> bytes:
    """A file's bytes; none through a link, for what is missing, and for what is too large."""
    try:
        if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
            return b""
        if path.stat().st_size > FILE_CAP_BYTES:
            notes.append(f"{path.name} is larger than {FILE_CAP_BYTES >> 20} MiB and left out")
            return b""
        return path.read_bytes()
    except OSError as error:
        notes.append(f"{path.name} cannot be read: {error.strerror}")
        return b""


def _json(path: Path) -> dict[str, Any]:
    try:
        if path.is_symlink() or path.stat().st_size > RESULT_CAP_BYTES:
            raise _Unreadable(f"{path.name} is a link, or larger than {RESULT_CAP_BYTES >> 20} MiB")
        body = json.loads(path.read_bytes())
    except OSError as error:
        raise _Unreadable(f"{path.name}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _Unreadable(plain(f"{path.name} is not JSON: {error}")) from None
    if not isinstance(body, dict):
        raise _Unreadable(f"{path.name} is not a JSON object")
    return body


def _name(value: Any, field: str) -> str:
    text = plain(value).strip() if isinstance(value, str) else ""
    if not text or len(text) > FIELD_CAP:
        raise _Unreadable(f"{field} is no name of 1 to {FIELD_CAP} characters")
    return text
