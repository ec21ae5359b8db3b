"""Evolution runs: made, paused, resumed, cancelled, and driven lineage by lineage.

Steps of one lineage follow one another, so that each depends on its own lineage's results only and
concurrency cannot change what a run produces; lineages go side by side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.utils import timezone

from evolution.directions import Direction, Effort
from evolution.llm.budget import Limits
from evolution.plain_text import plain
from evolution.scheduling import choose_parent
from webapp import dispatch
from webapp.lifecycle import PauseReason, RunStatus, VerificationStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, Lineage, Role, User
from webapp.models.environment import SOLVED
from webapp.services import transitions, verifications
from webapp.services.budgets import (
    UNLIMITED,
    budget_line,
    budget_of,
    check_budget,
    used_up,
)
from webapp.services.errors import InvalidInput, NotAllowed, TransitionRefused
from webapp.services.events import append_event

NAME_CAP = 200
PROCEDURAL, LLM = AUTHORS = ("procedural", "llm")
OPEN = (RunStatus.QUEUED, RunStatus.RUNNING)


def create_run(
    *,
    lineages: Sequence[Lineage],
    name: str = "",
    seed: int = 0,
    generations: int = 3,
    children: int = 2,
    directions: Sequence[Direction] = (),
    effort: Effort = Effort.LOW,
    author: str = PROCEDURAL,
    budget: Limits = UNLIMITED,
    step_budget: Limits = UNLIMITED,
    replay_of: EvolutionRun | None = None,
    user: User | None = None,
) -> EvolutionRun:
    """Store a run and start it. Raises InvalidInput, or NotAllowed below operator.

    A run with models needs a budget, unless it replays another run's answers; `step_budget` is
    what each of its steps may take for itself.
    """
    if user is not None and not user.has_role(Role.OPERATOR):
        raise NotAllowed("only operators start runs; ask one")
    if not lineages:
        raise InvalidInput("choose at least one lineage to evolve", "lineages")
    if not 0 <= seed < 2**63:
        raise InvalidInput("the seed must be between 0 and 2^63 - 1", "seed")
    if len(name) > NAME_CAP or not name.isprintable():
        raise InvalidInput(f"a name is one line of at most {NAME_CAP} characters", "name")
    if not 1 <= generations <= 50:
        raise InvalidInput("generations must be between 1 and 50", "generations")
    if not 1 <= children <= 4:
        raise InvalidInput("children must be between 1 and 4", "children")
    if author not in AUTHORS:
        raise InvalidInput(f"no author {author[:40]!r}: {' or '.join(AUTHORS)}", "author")
    _check_budget(author, replay_of is not None, budget)
    if not step_budget.is_open:
        _check_budget(author, replay_of is not None, step_budget, "step")
    with transaction.atomic():
        run = EvolutionRun.objects.create(
            name=name or f"{len(lineages)} lineages, {generations} generations, seed {seed}",
            seed=seed,
            generations=generations,
            children=children,
            directions=[str(direction) for direction in directions],
            effort=effort,
            author=author,
            budget_usd=budget.usd,
            budget_tokens=budget.tokens,
            budget_seconds=budget.seconds,
            step_usd=step_budget.usd,
            step_tokens=step_budget.tokens,
            step_seconds=step_budget.seconds,
            replay_of=replay_of,
            created_by=user,
        )
        run.lineages.set(lineages)
        append_event("run.created", run.name, run=run, actor=user)
        transitions.move(
            run, "status", RunStatus.RUNNING, set_fields={"started_at": timezone.now()}
        )
        for lineage in sorted(lineages, key=lambda item: item.pk):
            advance_lineage(run, lineage)
    return run


def pause_run(run: EvolutionRun, user: User | None) -> None:
    """No new step starts; those under way end. Raises TransitionRefused."""
    _require_operator(user)
    transitions.move(run, "status", RunStatus.PAUSED, actor=user)


def rest_run(run: EvolutionRun, reason: PauseReason, line: str) -> None:
    """Pause a run that cannot go on by itself; once, however many workers notice."""
    try:
        transitions.move(
            run,
            "status",
            RunStatus.PAUSED,
            sources=[RunStatus.RUNNING],
            set_fields={"pause_reason": reason, "error": plain(line)[:2_000]},
            reason=plain(line)[:2_000],
        )
    except TransitionRefused:
        return  # another worker was first, or a person


def resume_run(run: EvolutionRun, user: User | None, budget: Limits | None = None) -> None:
    """Go on where the run was paused, with another budget if one is given.

    Raises TransitionRefused, or InvalidInput for a run that rests because its budget is used up
    and is given none that goes further.
    """
    _require_operator(user)
    given = budget or budget_of(run)
    _check_budget(run.author, run.replay_of_id is not None, given)
    if run.pause_reason == PauseReason.BUDGET and run.status == RunStatus.PAUSED:
        _require_room(run, given)
    transitions.move(
        run,
        "status",
        RunStatus.RUNNING,
        sources=[RunStatus.PAUSED],
        actor=user,
        set_fields={
            "pause_reason": "",
            "error": "",
            "budget_usd": given.usd,
            "budget_tokens": given.tokens,
            "budget_seconds": given.seconds,
        },
        reason=budget_line(given) if budget else "",
    )
    run.steps.filter(status=RunStatus.QUEUED).update(sent_at=timezone.now())
    for step in run.steps.filter(status=RunStatus.QUEUED):
        dispatch.send(dispatch.RUN_STEP, step.pk)
    advance_run(run)


def cancel_run(run: EvolutionRun, user: User | None) -> None:
    """End the run; what was accepted stays. Raises TransitionRefused."""
    _require_operator(user)
    with transaction.atomic():
        transitions.move(
            run,
            "status",
            RunStatus.CANCELLED,
            actor=user,
            set_fields={"finished_at": timezone.now()},
        )
        for step in run.steps.filter(status=RunStatus.QUEUED):
            transitions.move(step, "status", RunStatus.CANCELLED, actor=user)


def advance_run(run: EvolutionRun) -> None:
    """Create whatever steps are due; complete the run when nothing is left. Idempotent."""
    if run.status != RunStatus.RUNNING:
        return
    unfinished = [
        lineage for lineage in run.lineages.order_by("pk") if advance_lineage(run, lineage)
    ]
    if not unfinished:
        _complete(run)


def advance_lineage(run: EvolutionRun, lineage: Lineage) -> bool:
    """Create the next step that is due in this lineage; whether there is anything left to do."""
    root = _start(lineage)
    if root.verification in (VerificationStatus.PENDING, VerificationStatus.ERRORED):
        return verifications.request_verification(root)
    if root.verification == VerificationStatus.VERIFYING:
        return True
    if root.verification == VerificationStatus.INVALID:
        return False
    steps = list(
        EvolutionStep.objects.filter(run=run, lineage=lineage).order_by("generation", "ordinal")
    )
    if any(step.status in OPEN for step in steps):
        return True
    generation, ordinal = _next_place(run, steps)
    parent = _parent(run, root, generation, ordinal) if generation else None
    if parent is None:
        return False
    _create_step(run, lineage, parent, generation, ordinal)
    return True


def _start(lineage: Lineage) -> Environment:
    """Where a lineage begins to evolve: its root, or the root with the solution that it lacked."""
    root = Environment.objects.get(lineage=lineage, parent=None)
    if root.has_solution:
        return root
    solved = root.children.filter(operator=SOLVED).exclude(verification=VerificationStatus.INVALID)
    return solved.order_by("pk").last() or root


def _next_place(run: EvolutionRun, steps: Sequence[EvolutionStep]) -> tuple[int, int]:
    """The first (generation, ordinal) without a step; (0, 0) when all are made."""
    made = {(step.generation, step.ordinal) for step in steps}
    for generation in range(1, run.generations + 1):
        for ordinal in range(run.children):
            if (generation, ordinal) not in made:
                return generation, ordinal
    return 0, 0


def _parent(
    run: EvolutionRun, root: Environment, generation: int, ordinal: int
) -> Environment | None:
    """A valid environment of the generation before, of this run; the root for the first."""
    if generation == 1:
        return root
    accepted = EvolutionStep.objects.filter(
        run=run,
        lineage=root.lineage,
        generation=generation - 1,
        child__verification=VerificationStatus.VALID,
    )
    found = list(Environment.objects.filter(pk__in=accepted.values("child")).order_by("path"))
    if not found:
        return None
    index = choose_parent(
        [environment.digest for environment in found], seed=run.seed, ordinal=ordinal
    )
    return found[index]


def _create_step(
    run: EvolutionRun, lineage: Lineage, parent: Environment, generation: int, ordinal: int
) -> None:
    text = f"{run.seed}:{parent.digest}:{generation}:{ordinal}"
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])
    try:
        with transaction.atomic():
            step = EvolutionStep.objects.create(
                run=run,
                lineage=lineage,
                parent=parent,
                generation=generation,
                ordinal=ordinal,
                seed=seed,
            )
    except IntegrityError:
        return  # another process was first
    dispatch.send(dispatch.RUN_STEP, step.pk)


def _complete(run: EvolutionRun) -> None:
    try:
        transitions.move(
            run,
            "status",
            RunStatus.COMPLETED,
            sources=[RunStatus.RUNNING],
            set_fields={"finished_at": timezone.now()},
        )
    except TransitionRefused:
        return  # another process was first, or a person paused or cancelled it meanwhile


def _check_budget(author: str, is_replay: bool, budget: Limits, prefix: str = "budget") -> None:
    """What asks models needs a budget that is one; what asks none must not seem to have one."""
    if author == LLM and not is_replay:
        check_budget(budget, prefix)
    elif not budget.is_open:
        text = "a budget is for what models take, and this run asks none"
        raise InvalidInput(text, f"{prefix}_usd")


def _require_room(run: EvolutionRun, budget: Limits) -> None:
    if line := used_up(run, budget):
        raise InvalidInput(f"run {run.pk} has used {line}: give it a larger budget", "budget_usd")


def _require_operator(user: User | None) -> None:
    if user is not None and not user.has_role(Role.OPERATOR):
        raise NotAllowed("only operators steer runs; ask one")
