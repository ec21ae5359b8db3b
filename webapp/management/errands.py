"""`evolve --solve ID…` and `measure ID… --triage`: what is asked of a model about environments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from evolution.llm.budget import Limits
from evolution.llm.endpoints import ModelConfigError
from webapp import dispatch, wiring
from webapp.adapters.errands import work_on_errand
from webapp.lifecycle import RunStatus, TrialStatus
from webapp.management.reporting import find_environments, format_table
from webapp.management.verifying import carry_out_here
from webapp.model_forecast import check_errand
from webapp.models import Environment, Errand, ErrandKind
from webapp.services import leases
from webapp.services.errands import ask_errand, let_go, waiting_errand
from webapp.services.errors import ServiceError


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one environment; `error` where nothing came of it."""

    environment: Environment
    errand: Errand | None
    error: str = ""

    @property
    def child(self) -> Environment | None:
        """What it led to, if anything."""
        return self.errand.child if self.errand is not None else None

    @property
    def said(self) -> str:
        """What came of it, in one line."""
        return self.error or (self.errand.said if self.errand is not None else "")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        child = self.child
        return {
            "environment": self.environment.pk,
            "said": self.said,
            "is_done": not self.error,
            "answer": self.errand.answer if self.errand is not None else {},
            "child": child.pk if child else None,
            "verification": child.verification if child else "",
        }


def errand_all(
    names: list[str], kind: ErrandKind, budget: Limits, out: OutputWrapper, *, is_json: bool
) -> None:
    """Ask for each environment, one after another; `budget` is for each of them.

    Raises CommandError at the end when one could not be done: none is left half done.
    """
    wanted = list(find_environments(names))
    try:
        check_errand(kind, budget)
    except ModelConfigError as error:
        raise CommandError(str(error)) from None
    leases.expire()  # no worker need run that would take up what a killed one left
    rows = [_carried_out(environment, kind, budget) for environment in wanted]
    if is_json:
        out.write(json.dumps({kind.value: [row.as_json() for row in rows]}))
    else:
        out.write(format_table(["id", "name", "child", "verdict", "what came of it"], _cells(rows)))
    lacking = [row for row in rows if row.error or (kind is ErrandKind.SOLVE and row.child is None)]
    if lacking:
        raise CommandError(f"{len(lacking)} of {len(rows)} came to nothing: {lacking[0].said}")


def _carried_out(environment: Environment, kind: ErrandKind, budget: Limits) -> Row:
    """One errand, done in this very thread; the child that came of it is verified."""
    with dispatch.muted():
        try:
            errand = waiting_errand(environment, kind, budget)
            errand = errand or ask_errand(environment, kind, budget)
        except ServiceError as error:
            return Row(environment, None, str(error))
        try:
            work_on_errand(errand.pk, wiring.carry_out_errand, wiring.worker_name())
        except BaseException:  # Ctrl-C, too: it would look as if somebody worked on it
            let_go(errand, "the command that was at it was stopped, or met an error")
            raise
        errand.refresh_from_db()
        if errand.child is not None:
            for verification in errand.child.verifications.filter(status=TrialStatus.QUEUED):
                carry_out_here(verification)
            errand.child.refresh_from_db()
    is_done = errand.status == RunStatus.COMPLETED
    return Row(environment, errand, "" if is_done else errand.error or errand.status)


def _cells(rows: list[Row]) -> list[list[object]]:
    cells: list[list[object]] = []
    for row in rows:
        child = row.child
        ends = (str(child.pk), child.verification) if child else ("–", "")
        cells.append([row.environment.pk, row.environment.name, *ends, row.said])
    return cells
