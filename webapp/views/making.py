"""What models said: the story of an environment's making, the calls of a run, one call whole."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from evolution.llm.calls import CallOutcome, Role
from webapp.forms.filters import read_key
from webapp.http import Request, allow, answer, stream
from webapp.models import ModelCall
from webapp.models import Role as Rank
from webapp.models.call import TO_MODELS
from webapp.selectors import detail, runs, spend, transcripts
from webapp.views.environments import folder_name, frame

JSONL = "application/jsonl"


@allow(Rank.VIEWER)
def making(request: Request, pk: int) -> HttpResponseBase:
    """Who said what, in order, until this environment was there."""
    shown = detail.get_environment(pk)
    words = _words(request)
    after = read_key(request.GET, "after")
    entries, more = transcripts.story_page(shown, words=words, after=after)
    roles = spend.spend_by_role(transcripts.story_calls(shown))
    context = frame(shown, "making") | {
        "entries": entries,
        "more": more,
        "words": words,
        "is_first": after is None,
        "total": spend.total_of(roles),
        "roles": roles,
    }
    return answer(request, "webapp/environment_making.html", context)


@allow(Rank.VIEWER)
def making_export(request: Request, pk: int) -> HttpResponseBase:
    """The same calls, each whole, as JSON Lines."""
    shown = detail.get_environment(pk)
    lines = transcripts.export_lines(transcripts.story_calls(shown))
    return stream(request, lines, f"{folder_name(shown)}-making.jsonl", JSONL)


@allow(Rank.VIEWER)
def run_calls(request: Request, pk: int) -> HttpResponseBase:
    """The calls of a run, newest first: by role, by outcome, by words."""
    shown = runs.get_run(pk)
    words, role, outcome = _words(request), request.GET.get("role"), request.GET.get("outcome")
    role = role if role in set(Role) else ""
    outcome = outcome if outcome in {"faults", *CallOutcome} else ""
    rows = transcripts.list_calls(
        ModelCall.objects.filter(run=shown),
        words=words,
        role=role or "",
        outcome=outcome or "",
        before=read_key(request.GET, "before"),
    )
    page = rows[: transcripts.PAGE_ROWS]
    context = {
        "run": shown,
        "calls": page,
        "before": page[-1].pk if len(rows) > len(page) else None,
        "words": words,
        "role": role,
        "outcome": outcome,
        "all_roles": list(Role),
        "all_outcomes": list(CallOutcome),
    }
    return answer(request, "webapp/run_calls.html", context)


@allow(Rank.VIEWER)
def run_calls_export(request: Request, pk: int) -> HttpResponseBase:
    """Every call of a run, whole, as JSON Lines."""
    shown = runs.get_run(pk)
    lines = transcripts.export_lines(ModelCall.objects.filter(TO_MODELS, run=shown))
    return stream(request, lines, f"run-{shown.pk}-calls.jsonl", JSONL)


@allow(Rank.VIEWER)
def call(request: Request, pk: int) -> HttpResponseBase:
    """One attempt at one call, with all that was newly said."""
    row = transcripts.get_call(pk)
    context = {"call": transcripts.view_call(row, is_whole=True), "row": row}
    return answer(request, "webapp/call.html", context)


def _words(request: Request) -> str:
    return request.GET.get("q", "")[: transcripts.QUERY_CAP].replace("\0", "").strip()
