"""The audit list."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from webapp.forms.filters import read_key
from webapp.http import Request, allow, answer
from webapp.models import Role
from webapp.selectors import audit


@allow(Role.OPERATOR)
def audit_list(request: Request) -> HttpResponseBase:
    """Who did what to which digest, newest first."""
    kind = request.GET.get("kind", "")[:60].replace("\0", "")
    actor = request.GET.get("actor", "")[:150].replace("\0", "")
    rows = audit.audit_rows(kind=kind, actor=actor, before=read_key(request.GET, "before"))
    shown = rows[: audit.PAGE_ROWS]
    context = {
        "events": shown,
        "kind": kind,
        "actor": actor,
        "before": shown[-1].pk if len(rows) > audit.PAGE_ROWS else None,
    }
    return answer(request, "webapp/audit.html", context)
