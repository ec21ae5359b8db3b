"""Evolution steps: what a worker hands back when it has worked on one."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from evolution.contracts import StepEnd, StepResult
from evolution.llm.calls import CallOutcome
from evolution.plain_text import plain
from webapp.lifecycle import PauseReason, RunStatus
from webapp.models import Environment, EvolutionStep
from webapp.services import leases, transitions
from webapp.services.runs import advance_run, rest_run

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 15.0, 600.0
PATIENCE = 8
"""How often in a row a step waits for a model, about half an hour, before its run rests."""
HOPELESS = (CallOutcome.AUTH, CallOutcome.BAD_REQUEST)
"""What no waiting mends: a person has to look at the key, or at what is configured."""
LINE_CAP = 2_000


def record_step(step: EvolutionStep, result: StepResult, seconds: float) -> None:
    """Close a step and make the next ones due; one that the machinery spoiled is queued again.

    Raises TransitionRefused for a zombie worker.
    """
    if result.unavailable is not None:
        wait_for_model(step, result.unavailable, result.refusals[-1])
        return
    if result.end is StepEnd.INCONCLUSIVE and leases.has_attempts_left(step):
        leases.put_back(step, _line(result))
        return
    accepted = result.accepted
    child = None
    if accepted is not None:
        child = Environment.objects.get(parent=step.parent, digest=accepted.mutation.child.digest)
    with transaction.atomic():
        transitions.move(
            step,
            "status",
            RunStatus.COMPLETED,
            sources=[RunStatus.RUNNING],
            where={"attempt": step.attempt},
            set_fields={
                "end": result.end,
                "child": child,
                "refusals": [plain(line)[:LINE_CAP] for line in result.refusals],
                "error": "",
                "seconds": seconds,
                "finished_at": timezone.now(),
                "lease_expires_at": None,
            },
            reason=_line(result),
            event={"environment": child} if child else None,
        )
        advance_run(step.run)


def stop_for_budget(step: EvolutionStep, line: str) -> None:
    """The hard stop: the run rests, the step is put back, and nothing that was finished is lost.

    Raises TransitionRefused for a zombie worker.
    """
    with transaction.atomic():
        rest_run(step.run, PauseReason.BUDGET, line)
        _excuse(step, line, 0.0)


def wait_for_model(step: EvolutionStep, outcome: CallOutcome, line: str) -> None:
    """No model answers: the step waits, longer each time; the run rests when that is hopeless.

    Raises TransitionRefused for a zombie worker.
    """
    with transaction.atomic():
        if outcome in HOPELESS or step.excused % PATIENCE == PATIENCE - 1:
            rest_run(step.run, PauseReason.MODEL, line)
        _excuse(step, line, FIRST_WAIT_SECONDS * 2 ** (step.excused % PATIENCE))


def _excuse(step: EvolutionStep, line: str, wait_seconds: float) -> None:
    wait = timedelta(seconds=min(wait_seconds, LONGEST_WAIT_SECONDS))
    leases.put_back(
        step,
        plain(line)[:LINE_CAP],
        set_fields={
            "sent_at": timezone.now() + wait,
            "excused": F("excused") + 1,
            "error": plain(line)[:LINE_CAP],
        },
    )


def step_operators(step: EvolutionStep) -> tuple[str, ...]:
    """Operators that accepted siblings of the child to be made have used already."""
    return tuple(sorted(set(given_before(step).values_list("child__operator", flat=True))))


def given_before(step: EvolutionStep) -> QuerySet[EvolutionStep]:
    """The other steps of this run that have given the step's parent a child."""
    rows = EvolutionStep.objects.filter(run=step.run, parent=step.parent, child__isnull=False)
    return rows.exclude(pk=step.pk)


def _line(result: StepResult) -> str:
    accepted = result.accepted
    if accepted is not None:
        return f"accepted: {accepted.mutation.demand.title}"
    if result.end is StepEnd.INCONCLUSIVE:
        return "inconclusive: the machinery broke; see the trials"
    return result.refusals[-1] if result.refusals else "no direction led to a valid child"
