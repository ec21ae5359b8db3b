"""The matrix of the gates: what each said with its evidence, beside the parent; asking again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from evolution.gates.policy import TABLE, Depth
from webapp.http import Request, allow, answer, attachment, wants_fragment
from webapp.models import Environment, Role, Verification
from webapp.models.trial import ALL_GATES
from webapp.presentation.damage import Damage, damage_of
from webapp.presentation.evidence import EvidenceTable, evidence_table
from webapp.presentation.figures import Figure, figures_of
from webapp.selectors import detail, matrix
from webapp.selectors.matrix import MatrixRow
from webapp.services.verifications import request_verification
from webapp.views.environments import folder_name, frame
from webapp.views.errands import panels_of


@dataclass(frozen=True, slots=True)
class ShownGate:
    """A row of the matrix with what its evidence amounts to."""

    row: MatrixRow
    figures: tuple[Figure, ...]
    damage: Damage | None
    evidence: EvidenceTable


@allow(Role.VIEWER)
def gates(request: Request, pk: int) -> HttpResponseBase:
    """What every gate said, with its evidence; while one is under way, how far it is."""
    shown = detail.get_environment(pk)
    rows = matrix.list_verifications(shown)
    newest = rows[0] if rows else None
    context = frame(shown, "gates") | {
        "newest": newest,
        "answered": matrix.answered_of(shown, newest) if newest else None,
    }
    if not wants_fragment(request):  # which is asked for every two seconds, and shows no gate
        context |= panels_of(shown) | _matrix(request, shown, rows)
    return answer(request, "webapp/environment_gates.html", context, fragment="progress")


def _matrix(request: Request, shown: Environment, rows: Sequence[Verification]) -> dict[str, Any]:
    verification = matrix.choose_verification(shown, rows, request.GET.get("v", ""))
    beside = matrix.choose_beside(shown, rows, verification, request.GET.get("beside", ""))
    found = matrix.matrix_of(shown, verification, beside) if verification else ()
    return {
        "verifications": rows,
        "verification": verification,
        "beside": beside,
        "gates": shown_gates(found),
        "moved": [row for row in found if row.change],
        "stale": sum(bool(row.view and row.view.is_stale) for row in found),
        "all_gates": ALL_GATES,
    }


def shown_gates(rows: Iterable[MatrixRow]) -> tuple[ShownGate, ...]:
    """Rows with their figures in words, and with the matrix of mutants drawn from its evidence."""
    return tuple(_shown(row) for row in rows)


def answered_gates(verification: Verification | None) -> tuple[ShownGate, ...]:
    """The gates that have answered, beside nothing."""
    views = matrix.gate_views(verification)
    return shown_gates(MatrixRow(view.record.gate, view) for view in views)


def _shown(row: MatrixRow) -> ShownGate:
    if row.view is None:
        return ShownGate(row, (), None, evidence_table(()))
    beside = row.beside.figures if row.beside else None
    damage = damage_of(row.view.evidence)
    evidence = evidence_table(damage.rest if damage else row.view.evidence)
    return ShownGate(row, figures_of(row.gate, row.view.record.figures, beside), damage, evidence)


@allow(Role.VIEWER)
def gates_json(request: Request, pk: int) -> HttpResponse:
    """One verification's matrix with all evidence, as a file."""
    shown = detail.get_environment(pk)
    rows = matrix.list_verifications(shown)
    verification = matrix.choose_verification(shown, rows, request.GET.get("v", ""))
    if verification is None:
        raise Http404("not verified yet")
    verification.environment = shown
    text = json.dumps(matrix.matrix_as_json(verification), indent=2)
    name = f"{folder_name(shown)}-verification-{verification.number}.json"
    return attachment(text.encode(), name, "application/json")


@allow(Role.OPERATOR, "POST")
def verify(request: Request, pk: int) -> HttpResponse:
    """Ask the gates again: `gate` names the one whose earlier answer does not count, or is "all".

    `depth` is quick or full; nonsense is read as quick. Goes to the newest verification.
    """
    shown = detail.get_environment(pk)
    gate = request.POST.get("gate", "")
    depth = Depth.FULL if request.POST.get("depth") == Depth.FULL else Depth.QUICK
    before = _newest(shown)
    is_queued = request_verification(shown, depth, gate if gate in (*TABLE, ALL_GATES) else "")
    newest = _newest(shown)
    if not is_queued:
        text = "The machinery has spoiled three verifications: look at it, then ask all gates anew."
        messages.error(request, text)
    elif newest == before:
        messages.info(request, "A verification is under way already; nothing was added.")
    return redirect(f"{reverse('environment_gates', args=[pk])}?v={newest}")


def _newest(environment: Environment) -> int:
    """The number of its newest verification, 0 for none."""
    rows = Verification.objects.filter(environment=environment).order_by("-number")
    return rows.values_list("number", flat=True).first() or 0
