"""What can be asked for about an environment, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from evolution.llm.endpoints import ModelConfigError
from webapp.forms.run import BudgetForm
from webapp.http import Request, allow, answer
from webapp.model_forecast import check_errand
from webapp.models import Environment, Errand, ErrandKind, Role
from webapp.selectors import detail
from webapp.services import errands
from webapp.services.errors import InvalidInput

USUAL_TOKENS = {ErrandKind.SOLVE: 1_000_000, ErrandKind.TRIAGE: 200_000}
"""The budget that a form begins with."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One kind of errand: the newest one, and the form where it can be asked of a model."""

    kind: str
    newest: Errand | None
    form: BudgetForm | None
    can_be_asked: bool


def panels_of(environment: Environment) -> dict[str, Any]:
    """What the page shows of errands: those that were asked, and those that can be."""
    rows = environment.errands.select_related("child").order_by("pk")
    newest = {ErrandKind(row.kind): row for row in rows}
    found = [_panel(environment, kind, newest.get(kind)) for kind in ErrandKind]
    return {
        "panels": [panel for panel in found if panel.newest or panel.can_be_asked],
        "is_asking": any(row.is_open for row in newest.values()),
    }


def _panel(environment: Environment, kind: ErrandKind, newest: Errand | None) -> Panel:
    is_open = newest is not None and newest.is_open
    can_be_asked = not is_open and not errands.refusal(environment, kind)
    form = None
    if can_be_asked and kind.asks_a_model:
        usual = {"budget_tokens": USUAL_TOKENS[kind]}
        form = BudgetForm(initial=usual, auto_id=f"{kind}-%s")
    return Panel(kind.value, newest, form, can_be_asked)


@allow(Role.VIEWER)
def errand_list(request: Request, pk: int) -> HttpResponseBase:
    """The panels alone, asked for now and then while somebody is at work."""
    shown = detail.get_environment(pk)
    context = {"environment": shown} | panels_of(shown)
    return answer(request, "webapp/parts/errands.html", context)


@allow(Role.OPERATOR, "POST")
def errand_ask(request: Request, pk: int, kind: str) -> HttpResponse:
    """Ask; what cannot be asked is said on the page."""
    shown = detail.get_environment(pk)
    if kind not in ErrandKind.values:
        raise Http404("no such errand")
    asked = ErrandKind(kind)
    try:
        if asked.asks_a_model:
            budget = BudgetForm(request.POST).given()
            check_errand(asked, budget)
            errands.ask_errand(shown, asked, budget, request.user)
        else:
            errands.ask_errand(shown, asked, user=request.user)
    except (InvalidInput, ModelConfigError) as error:
        messages.error(request, str(error))
    return redirect("environment_gates", pk=pk)
