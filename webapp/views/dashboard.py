"""The first page, and the probe."""

from __future__ import annotations

from django.db import connection
from django.db.utils import OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.http import Request, allow, answer, public
from webapp.models import Role
from webapp.presentation.plots import curve
from webapp.selectors import overview, queue, runs


@allow(Role.VIEWER)
def dashboard(request: Request) -> HttpResponseBase:
    """What waits, what runs, what is new, what failed, how difficulty rises."""
    points = overview.difficulty_by_generation()
    context = {
        "totals": overview.totals(),
        "runs": overview.active_runs(),
        "newest": overview.newest_valid(),
        "failures": runs.failures(),
        "points": points,
        "demand_curve": curve([(p.generation, p.demands, p.n) for p in points]),
        "d_t_curve": curve([(p.generation, p.d_t, p.d_t_n) for p in points]),
        "queue": queue.queue_rows(request.user, limit=5, free_only=True),
    }
    return answer(request, "webapp/dashboard.html", context)


@public
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """200 when the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        return HttpResponse("database away\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")
