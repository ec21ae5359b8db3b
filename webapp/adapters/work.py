"""One piece of work: claim the row, work without a transaction, record under the lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from django.db import connection
from django.db.models import QuerySet

from evolution.bundle import Bundle
from evolution.contracts import StepConfig, StepResult, Subject
from evolution.directions import Direction, Effort
from evolution.engine import evolve_step
from evolution.gates.protocol import Depth, verify_bundle
from evolution.llm.calls import BudgetStop, CallLog, CallOutcome
from evolution.llm.endpoints import ModelConfigError
from evolution.llm.replay import ReplayMiss
from evolution.ports import Author
from sandbox.base import TrialRunner
from webapp.adapters.calls import DatabaseCallLog
from webapp.adapters.journal import DatabaseGateMemory, DatabaseJournal, DatabaseTrialLog
from webapp.lifecycle import RunStatus, VerificationStatus
from webapp.models import Environment, EvolutionStep, Verification
from webapp.services import leases, runs, steps, verifications
from webapp.services.calls import Place
from webapp.services.environments import load_mutation, load_subject
from webapp.services.errors import TransitionRefused
from webapp.services.leases import HEARTBEAT_SECONDS, Leased
from webapp.store import load_bundle

logger = logging.getLogger(__name__)


RunnerFor = Callable[[str], TrialRunner]
"""Gives a runner on behalf of a party: those who want sandboxes are served party by party."""


AuthorFor = Callable[[EvolutionStep, CallLog], AbstractContextManager[Author]]
"""Gives the author of a step, for as long as it lasts; its calls to models go into that log.

Raises ModelConfigError when the models that it needs are not there.
"""


def work_on_step(step_id: int, runner_for: RunnerFor, author_for: AuthorFor, worker: str) -> bool:
    """Carry out one step; False when it is not ours to do (taken, done, gone, cancelled)."""
    step = EvolutionStep.objects.filter(pk=step_id).first()
    if step is None or not leases.claim(step):
        return False
    EvolutionStep.objects.filter(pk=step.pk).update(worker=worker)
    started = time.monotonic()
    config = StepConfig(
        seed=step.seed,
        effort=Effort(step.run.effort),
        directions=tuple(Direction(value) for value in step.run.directions),
        avoid=steps.step_operators(step),
    )
    try:
        try:
            with held(step):
                result = _evolve(step, runner_for, author_for, config)
        # From here on in transactions: nothing slow, and only while the lease is ours.
        except BudgetStop as stop:
            steps.stop_for_budget(step, str(stop))
        except (ModelConfigError, ReplayMiss) as error:
            steps.wait_for_model(step, CallOutcome.AUTH, str(error))
        else:
            steps.record_step(step, result, time.monotonic() - started)
    except TransitionRefused:
        logger.warning("step %s: the lease was lost, its result is dropped", step.pk)
    return True


def _evolve(
    step: EvolutionStep, runner_for: RunnerFor, author_for: AuthorFor, config: StepConfig
) -> StepResult:
    place = Place(run=step.run, step=step)
    with (
        DatabaseCallLog(place, replay_of=step.run.replay_of) as log,
        author_for(step, log) as author,
    ):
        runner = runner_for(f"run {step.run_id}")
        journal = DatabaseJournal(step, log)
        subject, others = load_subject(step.parent), _given_before(step)
        return evolve_step(subject, author, runner, journal, config, others=others)


def work_on_verification(verification_id: int, runner_for: RunnerFor, worker: str) -> bool:
    """Carry out one verification, as deep as was asked; False when it is not ours to do."""
    verification = Verification.objects.filter(pk=verification_id).first()
    if verification is None or not leases.claim(verification):
        return False
    environment = verification.environment
    logger.debug("%s verifies environment %s", worker, environment.pk)
    with held(verification):
        verdict = verify_bundle(
            load_subject(environment),
            load_mutation(environment),
            runner_for(_party(environment)),
            DatabaseTrialLog(verification),
            parent=_compared_with(environment),
            depth=Depth(verification.depth),
            others=_elder_siblings(environment),
            policy=environment.policy,
            memory=DatabaseGateMemory(verification),
        )
    try:
        verifications.record_verdict(verification, verdict)
    except TransitionRefused:
        logger.warning("verification %s: the lease was lost", verification.pk)
        return True
    for run in environment.lineage.runs.filter(status=RunStatus.RUNNING):
        runs.advance_run(run)
    return True


def _compared_with(environment: Environment) -> Subject | None:
    """The parent that a child has to differ from; a revision claims nothing that is new."""
    if environment.parent is None or environment.is_revision:
        return None
    return load_subject(environment.parent)


def _party(environment: Environment) -> str:
    """On whose behalf an environment is verified: a run that waits for it, or a person."""
    run = environment.lineage.runs.filter(status=RunStatus.RUNNING).order_by("pk").first()
    return "a person" if run is None else f"run {run.pk}"


def _elder_siblings(environment: Environment) -> tuple[tuple[str, Bundle], ...]:
    """The valid children that the same parent had before, by name: they are not to be repeated.

    Those that were refused are no rivals: most often this one is their repair.
    """
    if environment.parent is None:
        return ()
    return _valid_ones(environment.parent.children.filter(pk__lt=environment.pk))


def _given_before(step: EvolutionStep) -> tuple[tuple[str, Bundle], ...]:
    """The valid children that this run has given the step's parent already, by name.

    Children of other runs are no rivals: the same run again makes the same children.
    """
    before = steps.given_before(step).values("child")
    return _valid_ones(Environment.objects.filter(pk__in=before))


def _valid_ones(rows: QuerySet[Environment]) -> tuple[tuple[str, Bundle], ...]:
    valid = rows.filter(verification=VerificationStatus.VALID).order_by("pk")
    return tuple((f"{one.name} ({one.short_digest})", load_bundle(one)) for one in valid)


@contextmanager
def held(row: Leased) -> Iterator[None]:
    """Extend the lease from a thread of its own for as long as the block works."""
    stop = threading.Event()

    def beat() -> None:
        try:
            while not stop.wait(HEARTBEAT_SECONDS):
                if not leases.extend(row):
                    return
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"lease-{row.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
