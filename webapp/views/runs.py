"""Runs: the list, a new one, and one run as it goes."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django_htmx.http import ptag

from evolution.directions import Direction, Effort
from evolution.llm.endpoints import ModelConfigError
from webapp.forms.filters import read_key
from webapp.forms.run import BudgetForm, RunForm
from webapp.http import Request, allow, answer
from webapp.model_forecast import Forecast, forecast_run
from webapp.models import EvolutionRun, Role, User
from webapp.selectors import runs
from webapp.selectors import spend as spends
from webapp.services import runs as run_services
from webapp.services.budgets import check_budget, limits_line, step_budget_of
from webapp.services.errors import InvalidInput, NotAllowed, TransitionRefused

_CHANGES = {
    "pause": run_services.pause_run,
    "cancel": run_services.cancel_run,
}


@allow(Role.VIEWER)
def run_list(request: Request) -> HttpResponseBase:
    """All runs, newest first."""
    return answer(request, "webapp/runs.html", {"runs": runs.list_runs()[:200]})


@allow(Role.OPERATOR, "GET", "HEAD", "POST")
def run_new(request: Request) -> HttpResponseBase:
    """The form for a run; POST starts it, or forecasts it where `forecast` is sent."""
    form = RunForm(request.POST or None)
    found: Forecast | None = None
    if request.method == "POST" and form.is_valid():
        try:
            found = _forecast(form)
            if "forecast" not in request.POST:
                return redirect("run", pk=_create(form, request.user).pk)
            if found is None:
                form.add_error("author", "it asks no model: there is nothing to forecast")
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        except ModelConfigError as error:
            form.add_error("author", str(error))
    is_refused = request.method == "POST" and not form.is_valid()
    context: dict[str, Any] = {"form": form}
    if found is not None and not is_refused:
        context |= {"forecast": found, "hints": found.hints(form.budget)}
    return answer(request, "webapp/run_new.html", context, status=422 if is_refused else 200)


def _forecast(form: RunForm) -> Forecast | None:
    """What a run of models will take; None for one that asks none.

    Raises InvalidInput without a budget, and ModelConfigError where a model or its price is
    missing.
    """
    if form.cleaned_data["author"] != run_services.LLM:
        return None
    check_budget(form.budget)
    return forecast_run(form.steps, form.budget, form.step_budget)


def _create(form: RunForm, user: User) -> EvolutionRun:
    said = form.cleaned_data
    return run_services.create_run(
        lineages=list(said["lineages"]),
        name=said["name"],
        seed=said["seed"],
        generations=said["generations"],
        children=said["children"],
        directions=[Direction(value) for value in said["directions"]],
        effort=Effort(said["effort"]),
        author=said["author"] or run_services.PROCEDURAL,
        budget=form.budget,
        step_budget=form.step_budget,
        user=user,
    )


@allow(Role.VIEWER)
def run(request: Request, pk: int) -> HttpResponseBase:
    """Progress, yield, grid, generations, failures and the event log of one run."""
    shown = runs.get_run(pk)
    events = runs.run_events(shown)
    context = _live(shown) | {
        "events": events,
        "last_event": events[0].pk if events else 0,
        "tag": _tag(request, pk),
        "budget_form": BudgetForm(initial=vars(shown)) if shown.author == "llm" else None,
    }
    return answer(request, "webapp/run.html", context)


def _tag(request: Request, pk: int) -> str:
    """What the live part depends on; it is rendered again only when this changes."""
    shown = runs.get_run(pk)
    after = read_key(request.GET, "after") or 0
    state = (pk, after, shown.status, runs.last_event_id(shown), runs.state_mark(shown))
    return hashlib.sha256(repr(state).encode()).hexdigest()[:20]


@allow(Role.VIEWER)
@never_cache
@ptag(_tag)
def run_live(request: Request, pk: int) -> HttpResponseBase:
    """The changing part, asked for every two seconds; 304 while nothing changed."""
    shown = runs.get_run(pk)
    context = _live(shown) | {"last_event": read_key(request.GET, "after") or 0}
    context["new_events"] = runs.count_events_after(shown, context["last_event"])
    return answer(request, "webapp/run.html", context, fragment="live")


@allow(Role.VIEWER)
def run_events(request: Request, pk: int) -> HttpResponseBase:
    """The event log: from the newest on, or a page of older ones."""
    shown = runs.get_run(pk)
    before = read_key(request.GET, "before")
    events = runs.run_events(shown, before=before)
    context = {
        "run": shown,
        "events": events,
        "last_event": events[0].pk if events and before is None else 0,
    }
    fragment = "rows" if before else "log"
    return answer(request, "webapp/run_events.html", context, fragment=fragment)


@allow(Role.OPERATOR, "POST")
def run_change(request: Request, pk: int, change: str) -> HttpResponse:
    """Pause, resume or cancel; what cannot be done is said on the page."""
    try:
        if change == "resume":
            _resume(request, pk)
        else:
            _CHANGES[change](runs.get_run(pk), request.user)
    except (TransitionRefused, NotAllowed, InvalidInput) as error:
        messages.error(request, str(error))
    return redirect("run", pk=pk)


def _resume(request: Request, pk: int) -> None:
    """Go on, with the budget that was given; a field that was not sent stays as it is."""
    shown = runs.get_run(pk)
    sent = any(name in request.POST for name in BudgetForm.base_fields)
    budget = BudgetForm(request.POST).given() if sent else None
    run_services.resume_run(shown, request.user, budget)


def _live(shown: EvolutionRun) -> dict[str, Any]:
    spend = spends.run_spend(shown)
    return {
        "run": shown,
        "progress": runs.progress_of(shown),
        "funnel": runs.funnel(shown),
        "grid": runs.grid(shown),
        "generations": runs.generations(shown),
        "failures": runs.failures(shown),
        "spend": spend,
        "budget": spends.budget_rows(shown, spend) if spend else (),
        "step_budget": limits_line(step_budget_of(shown)),
        "waiting": runs.waiting_steps(shown),
        "steps": runs.running_steps(shown),
        "is_open": shown.status in ("queued", "running", "paused"),
    }
