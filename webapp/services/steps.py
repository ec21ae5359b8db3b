"""Evolution steps: what a worker hands back when it has worked on one."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from evolution.contracts import StepEnd, StepResult
from webapp.lifecycle import RunStatus
from webapp.models import Environment, EvolutionStep
from webapp.services import leases, transitions
from webapp.services.runs import advance_run


def record_step(step: EvolutionStep, result: StepResult, seconds: float) -> None:
    """Close a step and make the next ones due; one that the machinery spoiled is queued again.

    Raises TransitionRefused for a zombie worker.
    """
    if result.end is StepEnd.INCONCLUSIVE and step.attempt < leases.MAX_ATTEMPTS:
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
                "refusals": list(result.refusals),
                "seconds": seconds,
                "finished_at": timezone.now(),
                "lease_expires_at": None,
            },
            reason=_line(result),
            event={"environment": child} if child else None,
        )
        advance_run(step.run)


def step_operators(step: EvolutionStep) -> tuple[str, ...]:
    """Operators that accepted siblings of the child to be made have used already."""
    rows = EvolutionStep.objects.filter(
        run=step.run, parent=step.parent, child__isnull=False
    ).exclude(pk=step.pk)
    return tuple(sorted(set(rows.values_list("child__operator", flat=True))))


def _line(result: StepResult) -> str:
    accepted = result.accepted
    if accepted is not None:
        return f"accepted: {accepted.mutation.demand.title}"
    if result.end is StepEnd.INCONCLUSIVE:
        return "inconclusive: the machinery broke; see the trials"
    return result.refusals[-1] if result.refusals else "no direction led to a valid child"
