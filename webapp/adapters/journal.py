"""The engine's journal, kept in the database as the engine works."""

from __future__ import annotations

from evolution.contracts import Attempt, GateResult, Mutation, Plan
from sandbox.contracts import TrialResult
from webapp.adapters.calls import DatabaseCallLog
from webapp.lifecycle import TrialStatus, VerificationStatus
from webapp.models import Environment, EvolutionStep, Verification
from webapp.services import environments, trials, verifications
from webapp.services.events import append_event


class DatabaseTrialLog:
    """The trials and gates of one verification row."""

    def __init__(self, verification: Verification) -> None:
        self.verification = verification
        self._position = 0

    def recall(self, key: str, solver: str, repetition: int) -> TrialResult | None:
        """The result recorded for this trial, or None."""
        return trials.recall_trial(self.verification, key=key, solver=solver, repetition=repetition)

    def record(
        self, key: str, solver: str, repetition: int, gate: str, result: TrialResult
    ) -> None:
        """Keep a result for good."""
        trials.record_trial(
            self.verification,
            key=key,
            solver=solver,
            repetition=repetition,
            gate=gate,
            result=result,
        )

    def gate(self, result: GateResult) -> None:
        """A gate has answered. A verification that has its verdict keeps the answers behind it."""
        if self.verification.status != TrialStatus.RUNNING:
            return
        verifications.record_gate(self.verification, self._position, result)
        self._position += 1


class DatabaseGateMemory:
    """What gates answered in earlier verifications, for one that shall not ask it all again."""

    def __init__(self, verification: Verification) -> None:
        self._verification = verification

    def recall(self, gate: str, cache_key: str) -> GateResult | None:
        """See `GateMemory.recall`."""
        return verifications.recall_gate(self._verification, gate, cache_key)


class DatabaseJournal:
    """What one step tells, as rows of the step's run."""

    def __init__(self, step: EvolutionStep, calls: DatabaseCallLog | None = None) -> None:
        self._step = step
        self._calls = calls
        self._open: dict[str, Verification] = {}

    def event(self, kind: str, text: str, **facts: str | int | float) -> None:
        """Something worth a line happened."""
        append_event(kind, text[:2000], run=self._step.run, step=self._step, facts=facts)

    def open_candidate(self, plan: Plan, mutation: Mutation, repair: int) -> DatabaseTrialLog:
        """Store the child, or find it again after a worker died, and open its verification."""
        environment, is_new = environments.add_candidate(self._step, plan, mutation, repair)
        if not is_new and environment.step_id == self._step.pk:
            environments.renew_proof(environment, mutation)
        verification = _resumable(environment)
        if verification is None:
            verification = verifications.open_verification(environment, TrialStatus.RUNNING)
        self._open[mutation.child.digest] = verification
        if self._calls is not None:
            self._calls.give_to(environment)
        return DatabaseTrialLog(verification)

    def close_candidate(self, attempt: Attempt) -> None:
        """Record the verdict; a child that has it already keeps it."""
        verification = self._open[attempt.mutation.child.digest]
        if self._calls is not None:
            self._calls.give_to(verification.environment)
        if verification.status == TrialStatus.RUNNING:
            verifications.record_verdict(verification, attempt.verdict)

    def parent_log(self) -> DatabaseTrialLog:
        """The parent's own verification: its traced oracle run is remembered there."""
        verification = self._step.parent.current_verification
        if verification is None:
            raise ValueError(f"environment {self._step.parent_id} was never verified")
        return DatabaseTrialLog(verifications.answered_by(verification, "oracle"))


def _resumable(environment: Environment) -> Verification | None:
    """The verification of this proof to go on with: a running one, or one that gave a verdict."""
    proof = environment.parts_digest
    rows = environment.verifications.filter(parts_digest__in=["", proof]).order_by("-number")
    current = environment.current_verification
    if environment.verification not in (VerificationStatus.VALID, VerificationStatus.INVALID):
        return rows.filter(status=TrialStatus.RUNNING).first()
    if current is not None and current.parts_digest in ("", proof):
        return current
    return rows.filter(status__in=[TrialStatus.RUNNING, TrialStatus.COMPLETED]).first()
