"""A whole step with the registered operators, in real sandboxes."""

from __future__ import annotations

import pytest

from evolution.authors.procedural import ProceduralAuthor
from evolution.contracts import GateStatus, StepConfig, StepEnd
from evolution.gates.case import child_subject
from evolution.gates.policy import Depth, Policy, asked
from evolution.gates.protocol import verify_bundle
from evolution.memory import MemoryJournal, MemoryLog
from evolution.ports import TrialRunner
from evolution.recording import decode, encode, record_step, replay
from tests.evolution.real_sandbox import CONFIG, orders, subject_of

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]


def test_a_step_is_proved_in_sandboxes_and_replayed_without_them(runner: TrialRunner) -> None:
    parent, journal = subject_of(orders()), MemoryJournal()
    result, recording = record_step(
        parent, ProceduralAuthor(), runner, journal, StepConfig(seed=8), workers=2
    )
    assert result.end is StepEnd.ACCEPTED, result.refusals
    assert result.accepted is not None
    mutation = result.accepted.mutation
    statuses = {gate.gate: gate.status for gate in result.accepted.verdict.gates}
    assert set(statuses.values()) == {GateStatus.PASSED}
    assert list(statuses) == list(asked(Policy.MADE, Depth.QUICK))

    again = replay(decode(encode(recording)), ProceduralAuthor())
    assert again.accepted is not None
    assert again.accepted.mutation.child.digest == mutation.child.digest == recording.child_digest


def test_a_child_is_verified_again_from_what_was_kept_of_it(runner: TrialRunner) -> None:
    parent, journal = subject_of(orders()), MemoryJournal()
    result, _ = record_step(
        parent, ProceduralAuthor(), runner, journal, StepConfig(9, oracle_runs=1, nop_runs=1)
    )
    assert result.accepted is not None
    mutation = result.accepted.mutation
    child = child_subject(parent, mutation)
    log = MemoryLog(results=dict(journal.logs[mutation.child.digest].results))
    known = log.count
    verdict = verify_bundle(child, mutation, runner, log, CONFIG)
    assert verdict.is_valid, verdict.failed
    by_name = {gate.gate: gate for gate in verdict.gates}
    assert by_name["demand"].status is GateStatus.PASSED
    assert by_name["parent_solution"].status is GateStatus.NOT_APPLICABLE
    assert all(gate.is_blocking for gate in verdict.gates)
    assert log.count - known < 40
