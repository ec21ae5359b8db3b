"""Errands: what a person asks for about one environment; asked for, broken off, recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from evolution.bundle import Bundle
from evolution.gates.protocol import Depth
from evolution.llm.budget import Limits
from evolution.plain_text import plain
from webapp import dispatch
from webapp.lifecycle import RunStatus
from webapp.models import Environment, Errand, ErrandKind, Role, User
from webapp.models.environment import SOLVED
from webapp.services import transitions, verifications
from webapp.services.budgets import UNLIMITED, check_budget
from webapp.services.errors import InvalidInput, NotAllowed, TransitionRefused
from webapp.services.hardenings import hardening_refusal
from webapp.services.revisions import add_revision
from webapp.services.unpassed import attempts_at

LINE_CAP = 2_000


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an errand: one line, the role's answer, the bundle with its solution.

    `hardened` is the child that was stored with tests that refuse cheats.
    """

    said: str
    answer: Mapping[str, Any] = field(default_factory=dict)
    solved: Bundle | None = None
    hardened: Environment | None = None


def refusal(environment: Environment, kind: ErrandKind) -> str:
    """Why this cannot be asked of an environment, in one line; empty where it can."""
    if kind is ErrandKind.TRIAGE:
        return attempts_at(environment).refusal
    if kind is ErrandKind.SOLVE and environment.has_solution:
        return "it has a reference solution"
    if kind is ErrandKind.HARDEN:
        return hardening_refusal(environment)
    return ""


def ask_errand(
    environment: Environment,
    kind: ErrandKind,
    budget: Limits = UNLIMITED,
    user: User | None = None,
) -> Errand:
    """Queue an errand. Raises InvalidInput, or NotAllowed below operator.

    What was broken off goes on where it was; what came to an end is asked anew.
    """
    if user is not None and not user.has_role(Role.OPERATOR):
        raise NotAllowed(f"only operators ask to {kind.label}; ask one")
    if kind.asks_a_model:
        check_budget(budget)
    elif not budget.is_open:
        raise InvalidInput("a budget is for what models take, and this asks none", "budget_usd")
    if line := refusal(environment, kind):
        raise InvalidInput(f"{environment.name}: {line}")
    before = Errand.objects.filter(
        environment=environment, kind=kind, status=RunStatus.COMPLETED
    ).count()
    try:
        with transaction.atomic():
            errand = Errand.objects.create(
                environment=environment,
                kind=kind,
                number=before + 1,
                budget_usd=budget.usd,
                budget_tokens=budget.tokens,
                budget_seconds=budget.seconds,
                created_by=user,
            )
    except IntegrityError:
        who = "a model" if kind.asks_a_model else "a worker"
        raise InvalidInput(f"{environment.name}: {who} is at that already") from None
    dispatch.send(dispatch.RUN_ERRAND, errand.pk)
    return errand


def waiting_errand(environment: Environment, kind: ErrandKind, budget: Limits) -> Errand | None:
    """The errand that was asked for and that nobody works on, from now on with this budget.

    Such is one whose worker was killed. Raises InvalidInput.
    """
    if kind.asks_a_model:
        check_budget(budget)
    waiting = environment.errands.filter(kind=kind, status=RunStatus.QUEUED)
    waiting.update(
        budget_usd=budget.usd, budget_tokens=budget.tokens, budget_seconds=budget.seconds
    )
    return waiting.first()


def budget_of_errand(errand: Errand) -> Limits:
    """What the errand may take, from its first call on, whoever works on it."""
    return Limits(errand.budget_usd, errand.budget_tokens, errand.budget_seconds)


def record_errand(errand: Errand, done: Done) -> None:
    """Close an errand with what came of it; a solved bundle becomes a child, and is verified.

    A hardened child is verified in full, so that its page shows the cheats beside the parent's.

    Raises TransitionRefused for a zombie worker.
    """
    with transaction.atomic():
        child = done.hardened
        if done.solved is not None:
            child = _solved(errand, done.solved)
        elif child is not None:
            verifications.request_verification(child, Depth.FULL)
        line = plain(done.said)[:LINE_CAP]
        _end(
            errand,
            RunStatus.COMPLETED,
            line,
            {"said": line, "answer": dict(done.answer), "child": child},
        )


def break_off(errand: Errand, line: str) -> None:
    """End an errand that could not be carried out; asked again it goes on from there.

    Raises TransitionRefused for a zombie worker.
    """
    shown = plain(line)[:LINE_CAP]
    _end(errand, RunStatus.FAILED, shown, {"error": shown})


def let_go(errand: Errand, line: str) -> None:
    """Whoever had claimed an errand works on it no more; nothing where it ended by itself."""
    errand.refresh_from_db()
    try:
        break_off(errand, line)
    except TransitionRefused:
        return


def _end(errand: Errand, status: RunStatus, line: str, fields: dict[str, Any]) -> None:
    transitions.move(
        errand,
        "status",
        status,
        sources=[RunStatus.RUNNING],
        where={"attempt": errand.attempt},
        set_fields={"finished_at": timezone.now(), "lease_expires_at": None, **fields},
        reason=f"{errand.kind}: {line}",
    )


def _solved(errand: Errand, bundle: Bundle) -> Environment:
    child, _ = add_revision(
        errand.environment,
        bundle,
        operator=SOLVED,
        title=f"Solved: {errand.environment.title}"[:300],
        why="A model wrote the reference solution that it lacked; the gates accepted it.",
    )
    verifications.request_verification(child)
    return child
