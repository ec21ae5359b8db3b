"""One trial, whole."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from webapp.http import Request, allow, answer
from webapp.models import Role
from webapp.presentation.spending import limits_struck, spending
from webapp.presentation.text import tail
from webapp.selectors import detail
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
