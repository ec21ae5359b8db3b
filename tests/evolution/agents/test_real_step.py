"""Whole steps by scripted models, in real sandboxes."""

from __future__ import annotations

import pytest

from evolution.agents.means import Means
from evolution.authors.llm import LlmAuthor
from evolution.contracts import GateStatus, StepConfig, StepEnd, StepResult
from evolution.directions import Direction
from evolution.llm.calls import Role
from evolution.llm.replay import CallMemory
from evolution.memory import MemoryJournal
from evolution.recording import decode, encode, record_step, replay
from sandbox.trial import Runner
from tests.evolution.agents.conftest import RunnersBench
from tests.evolution.agents.orders_step import competent
from tests.evolution.agents.scripted import ScriptedModels
from tests.evolution.real_sandbox import orders, subject_of

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]
CONFIG = StepConfig(
    seed=71, directions=(Direction.LENGTH,), oracle_runs=1, nop_runs=1, mutant_count=12
)


def test_a_competent_model_makes_a_child_that_passes_every_gate(
    runner: Runner, workbench: RunnersBench
) -> None:
    models, log = ScriptedModels(competent()), CallMemory()
    author = LlmAuthor(Means(models, workbench, runner, log))
    result, recording = record_step(subject_of(orders()), author, runner, MemoryJournal(), CONFIG)
    assert result.end is StepEnd.ACCEPTED, told(result)
    assert result.accepted is not None
    verdict = result.accepted.verdict
    assert [gate.gate for gate in verdict.gates][-2:] == ["rubrics", "exploiter"]
    assert models.roles() == [
        Role.PROPOSER,
        Role.PLAN_REVIEWER,
        Role.MODIFIER,
        Role.JUDGE,
        Role.EXPLOITER,
    ]
    again = replay(decode(encode(recording)))
    assert again.accepted is not None
    assert again.accepted.mutation.child.digest == recording.child_digest
    assert [gate.gate for gate in again.accepted.verdict.gates] == [g.gate for g in verdict.gates]


def told(result: StepResult) -> str:
    """Why a step came to nothing."""
    rows = [*result.refusals]
    for attempt in result.attempts:
        for gate in attempt.verdict.gates:
            if gate.status is not GateStatus.PASSED:
                rows += [f"{gate.gate}: {gate.reason}", *map(str, gate.evidence)]
    return "\n".join(rows)
