"""Harbor's job folders: every trial is taken or refused, whatever lies in the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evolution.harbor_jobs import HarborRefusal, HarborTrial, read_jobs
from evolution.trajectories import cast_text, read_trajectory

RESULT: dict[str, Any] = {
    "task_name": "tests/orders",
    "trial_name": "orders__abc1234",
    "agent_info": {
        "name": "terminus-2",
        "version": "2",
        "model_info": {"name": "gpt-x", "provider": "openai"},
    },
    "agent_result": {"n_input_tokens": 1000, "n_output_tokens": 50, "cost_usd": 0.02},
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
    "agent_execution": {
        "started_at": "2026-12-01T18:26:39.5Z",
        "finished_at": "2026-12-01T18:27:12Z",
    },
    "reward_valid": True,
}


def lay(job: Path, name: str = "orders__abc1234", **changes: Any) -> Path:
    """A trial's folder in a job."""
    folder = job / name
    (folder / "agent").mkdir(parents=True)
    body = RESULT | {"trial_name": name} | changes
    (folder / "result.json").write_text(json.dumps(body))
    (job / "result.json").write_text('{"schema_version": 1, "stats": {}}')
    return folder


def only(path: Path) -> HarborTrial:
    (found,) = read_jobs(path)
    assert isinstance(found, HarborTrial), found
    return found


def test_a_trial_is_found_from_its_job_from_many_jobs_and_by_itself(tmp_path: Path) -> None:
    folder = lay(tmp_path / "jobs" / "nightly")
    (folder / "agent" / "trajectory.json").write_bytes(b'{"steps": []}')
    (folder / "agent" / "recording.cast").write_bytes(b'{"version": 2}\n[0, "o", "hi"]')
    (folder / "lock.json").write_text(json.dumps({"task": {"digest": f"sha256:{'a' * 64}"}}))
    for path in (tmp_path / "jobs", tmp_path / "jobs" / "nightly", folder):
        trial = only(path)
        assert (trial.solver, trial.task) == ("terminus-2 openai/gpt-x", "tests/orders")
        assert (trial.is_passed, trial.counts, trial.reward) == (True, True, 1.0)
        assert (trial.input_tokens, trial.output_tokens, trial.usd) == (1000, 50, 0.02)
        assert trial.seconds == 32.5
        assert trial.harbor_digest == "a" * 64
        assert trial.source == "nightly/orders__abc1234"
        assert trial.trajectory == b'{"steps": []}'
        assert cast_text(trial.cast) == "hi"


@pytest.mark.parametrize(
    ("changes", "counts", "cause"),
    [
        ({"reward_valid": False, "exception_info": {"exception_type": "X"}}, False, "x"),
        ({"verifier_result": None}, False, ""),
        ({"verifier_result": {"rewards": {"reward": float("nan")}}}, False, ""),
        ({"verifier_result": {"rewards": {"a": 1, "b": 1}}}, False, ""),
        ({"verifier_result": {"rewards": {"only": 0}}}, True, ""),
        ({"exception_info": {"exception_type": "AgentTimeoutError"}}, True, "agenttimeouterror"),
    ],
)
def test_only_a_reward_that_harbor_vouches_for_counts(
    tmp_path: Path, changes: dict[str, Any], counts: bool, cause: str
) -> None:
    lay(tmp_path / "job", **changes)
    trial = only(tmp_path / "job")
    assert (trial.counts, trial.cause) == (counts, cause)


def test_older_results_do_not_vouch_and_are_judged_by_their_cause(tmp_path: Path) -> None:
    timeout = {"exception_info": {"exception_type": "AgentTimeoutError"}, "reward_valid": None}
    broken = {"exception_info": {"exception_type": "DockerError"}, "reward_valid": None}
    lay(tmp_path / "job", "a", **timeout)
    lay(tmp_path / "job", "b", **broken)
    found = list(read_jobs(tmp_path))
    assert [t.counts for t in found if isinstance(t, HarborTrial)] == [True, False]


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"task_name": "x"}', b'{"task_name": 3}'],
)
def test_what_cannot_be_read_is_refused_alone(tmp_path: Path, content: bytes) -> None:
    job = tmp_path / "job"
    lay(job)
    (job / "broken").mkdir()
    (job / "broken" / "result.json").write_bytes(content)
    kinds = [type(found) for found in read_jobs(job)]
    assert kinds == [HarborRefusal, HarborTrial]


def test_numbers_that_nobody_could_store_are_none(tmp_path: Path) -> None:
    digits = 10**400
    lay(
        tmp_path,
        verifier_result={"rewards": {"reward": digits}},
        agent_result={"n_input_tokens": digits, "cost_usd": digits},
    )
    trial = only(tmp_path)
    assert (trial.reward, trial.usd, trial.input_tokens) == (None, None, None)
    assert not trial.counts
    assert not trial.is_passed


def test_tokens_of_many_steps_stay_a_number_that_fits(tmp_path: Path) -> None:
    steps = [{"agent_result": {"n_output_tokens": 2**53 - 1}}] * 2_000
    lay(tmp_path, agent_result=None, step_results=steps)
    assert only(tmp_path).output_tokens == 2**53


def test_a_linked_folder_of_an_agent_leads_nowhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "trajectory.json").write_text("key")
    (elsewhere / "x.cast").write_text("key")
    folder = lay(tmp_path / "job")
    (folder / "agent").rmdir()
    (folder / "agent").symlink_to(elsewhere)
    trial = only(tmp_path / "job")
    assert (trial.trajectory, trial.cast) == (b"", b"")


def test_links_lead_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    folder = lay(tmp_path / "job")
    (folder / "agent" / "trajectory.json").symlink_to(secret)
    (folder / "agent" / "x.cast").symlink_to(secret)
    trial = only(tmp_path / "job")
    assert (trial.trajectory, trial.cast) == (b"", b"")
    (folder / "result.json").unlink()
    (folder / "result.json").symlink_to(secret)
    (found,) = read_jobs(folder)
    assert isinstance(found, HarborRefusal)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"steps": 3}', b"[" * 100_000, b'{"steps": {}}', b"\x00"]
)
def test_what_is_no_trajectory_is_none(data: bytes) -> None:
    assert read_trajectory(data) is None
    assert cast_text(data) is None


def test_a_trajectory_of_a_stranger_never_fails() -> None:
    steps: list[Any] = [
        None,
        {"source": 3, "message": [{"text": "a"}, 5], "tool_calls": "x", "metrics": []},
        {"tool_calls": [{"function_name": None, "arguments": [1]}], "observation": {"results": 1}},
        {"observation": {"results": [{"content": "seen"}]}, "metrics": {"prompt_tokens": -1}},
    ]
    told = read_trajectory(json.dumps({"steps": steps}).encode())
    assert told is not None
    assert [step.message for step in told.steps] == ["a\n[no text]", "", ""]
    assert told.steps[2].actions[0].observation == "seen"
    assert told.steps[2].input_tokens is None
