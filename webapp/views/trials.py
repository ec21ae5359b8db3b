"""One trial, whole."""

from __future__ import annotations

from django.http import Http404
from django.http.response import HttpResponseBase

from webapp.http import Request, allow, answer, attachment
from webapp.models import Role
from webapp.presentation.spending import limits_struck, spending
from webapp.presentation.text import tail
from webapp.selectors import detail
from webapp.selectors import measured as measured_trials
from webapp.services.trials import unpack_result


@allow(Role.VIEWER)
def trial(request: Request, pk: int) -> HttpResponseBase:
    """Checks, outputs, time by phase, usage, sandbox and trace of a trial."""
    shown = detail.get_trial(pk)
    result = unpack_result(bytes(shown.record))
    context = {
        "trial": shown,
        "environment": shown.verification.environment,
        "result": result,
        "spent": spending(result),
        "struck": limits_struck(result),
        "cost": detail.trace_cost(shown) if result.trace else None,
        "checks": sorted(result.checks, key=lambda check: (check.is_passed, check.name)),
        "passed": sum(check.is_passed for check in result.checks),
        "solver_output": tail(result.solver_output),
        "verifier_output": tail(result.verifier_output),
        "neighbours": detail.neighbours_of(shown),
    }
    return answer(request, "webapp/trial.html", context)


@allow(Role.VIEWER)
def measured(request: Request, pk: int) -> HttpResponseBase:
    """One attempt of a solver: its steps, its terminal, what the verifier wrote."""
    row = measured_trials.get_measured(pk)
    context = {
        "row": row,
        "environment": row.environment,
        "shown": measured_trials.view_measured(row),
    }
    return answer(request, "webapp/measured.html", context)


@allow(Role.VIEWER)
def measured_cast(request: Request, pk: int) -> HttpResponseBase:
    """The recording of the terminal, for `asciinema play`."""
    row = measured_trials.get_measured(pk)
    if not row.cast_digest:
        raise Http404("no terminal was recorded")
    return attachment(
        measured_trials.cast_of(row), f"trial-{row.pk}.cast", "application/x-asciicast"
    )
