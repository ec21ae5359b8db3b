"""One trial, whole."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from webapp.http import Request, allow, answer
from webapp.models import Role
from webapp.presentation.text import tail
from webapp.selectors import detail
from webapp.services.trials import unpack_result


@allow(Role.VIEWER)
def trial(request: Request, pk: int) -> HttpResponseBase:
    """Phases, checks, outputs, usage and notes of a trial."""
    shown = detail.get_trial(pk)
    result = unpack_result(bytes(shown.record))
    total = sum(seconds for _, seconds in result.phases) or 1.0
    context = {
        "trial": shown,
        "environment": shown.verification.environment,
        "result": result,
        "phases": [(name, seconds, 100 * seconds / total) for name, seconds in result.phases],
        "checks": sorted(result.checks, key=lambda check: (check.is_passed, check.name)),
        "passed": sum(check.is_passed for check in result.checks),
        "solver_output": tail(result.solver_output),
        "verifier_output": tail(result.verifier_output),
        "neighbours": detail.neighbours_of(shown),
    }
    return answer(request, "webapp/trial.html", context)
