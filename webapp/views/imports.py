"""Imports: the list, and the report of one: funnel, findings by severity, refusals."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from webapp.http import Request, allow, answer
from webapp.models import Role
from webapp.selectors import findings, imports
from webapp.selectors.findings import Severity

ROWS = 200
"""Refusals and notes that are listed; all are counted."""


@allow(Role.VIEWER)
def import_list(request: Request) -> HttpResponseBase:
    """All imports, newest first."""
    return answer(request, "webapp/imports.html", {"imports": imports.list_imports()[:200]})


@allow(Role.VIEWER)
def import_report(request: Request, pk: int) -> HttpResponseBase:
    """How far what was found has come, and what is wrong with it, the gravest first."""
    batch = imports.get_import(pk)
    verdicts = imports.verdicts_of(batch)
    counts = findings.count_by_severity(verdicts)
    asked = request.GET.get("severity", "")
    only = next((severity for severity in Severity if str(severity.value) == asked), None)
    context = {
        "import": batch,
        "funnel": imports.funnel_of(batch),
        "counts": counts.items(),
        "only": only,
        "found": findings.findings(verdicts, only),
        "total": sum(counts.values()),
        "refusals": imports.refusals_of(batch)[:ROWS],
        "notes": imports.noted_of(batch)[:ROWS],
    }
    return answer(request, "webapp/import.html", context)
