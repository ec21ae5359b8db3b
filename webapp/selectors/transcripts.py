"""What models were asked and what they answered: the story of a making, lists, spend, exports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Max, Q, QuerySet
from django.shortcuts import get_object_or_404

from evolution.llm.calls import CallOutcome, Role
from evolution.transcripts import Speaker, Utterance, answer_of, new_in_request
from webapp.models import Environment, Event, ModelCall
from webapp.models.call import SEARCH_CONFIG, TO_MODELS
from webapp.models.environment import SOLVED
from webapp.presentation.text import Excerpt, excerpt
from webapp.store import CorruptStore, load_all_packed, load_packed

PAGE_CALLS = 20
PAGE_ROWS = 100
EVENT_CAP = 400
PART_CAP, PART_LINES = 6_000, 160
WHOLE_CAP, WHOLE_LINES = 100_000, 3_000
QUERY_CAP = 200
EXPORT_BATCH = 50


@dataclass(frozen=True, slots=True)
class Said:
    """One part of a conversation as shown. `label` tells who, or which tool."""

    label: str
    tone: str
    text: str
    cut: str
    is_long: bool


@dataclass(frozen=True, slots=True)
class CallView:
    """A call with what was newly said to the model, and what it answered."""

    row: ModelCall
    asked: tuple[Said, ...]
    answered: tuple[Said, ...]
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened in a story: a call, or an event of the step."""

    at: datetime
    call: CallView | None = None
    event: Event | None = None


def story_calls(environment: Environment) -> QuerySet[ModelCall]:
    """The calls of the step that an environment came from, or that prepared a seed."""
    mine = Q(environment=environment) & ~Q(role=Role.SOLVER.value)
    if environment.step_id is not None:
        mine |= Q(step=environment.step_id)
    elif environment.operator == SOLVED:  # its solution was asked for at the parent
        mine |= Q(environment=environment.parent_id, run=None, place__startswith="solution/")
    return ModelCall.objects.filter(TO_MODELS, mine)


def said(rows: QuerySet[ModelCall], words: str) -> QuerySet[ModelCall]:
    """Those calls in which all these words were newly said; quotes keep a phrase together."""
    if not words.strip():
        return rows
    return rows.annotate(words=SearchVector("text", config=SEARCH_CONFIG)).filter(
        words=SearchQuery(words[:QUERY_CAP], config=SEARCH_CONFIG, search_type="websearch")
    )


def story_page(
    environment: Environment, *, words: str, after: int | None
) -> tuple[list[Entry], int | None]:
    """A page of the story, oldest first, and the key of the next one.

    With `words`, only calls in which they were said, and no events.
    """
    rows = said(story_calls(environment), words).select_related("environment").order_by("id")
    kept = rows.filter(id__gt=after) if after else rows
    found = list(kept.defer("text")[: PAGE_CALLS + 1])
    calls, more = found[:PAGE_CALLS], len(found) > PAGE_CALLS
    entries = [
        Entry(row.created_at, call=view) for row, view in zip(calls, _told(calls), strict=True)
    ]
    if not words.strip():
        until = calls[-1].created_at if more else None
        since = rows.filter(id__lte=after).aggregate(at=Max("created_at"))["at"] if after else None
        entries += _events(environment, since, until)
    entries.sort(key=lambda entry: entry.at)
    return entries, calls[-1].pk if more else None


def _told(rows: list[ModelCall]) -> list[CallView]:
    """Calls of one page: what was asked is told at the first attempt, a prompt at its first use."""
    bodies = _bodies(rows)
    keys: set[str] = set()
    prompts: set[str] = set()
    views = []
    for row in rows:
        view = view_call(row, bodies=bodies)
        if row.key in keys:
            view = replace(view, asked=())
        elif row.prompt_digest in prompts:
            asked = tuple(one for one in view.asked if one.tone != Speaker.SYSTEM.value)
            view = replace(view, asked=asked)
        keys.add(row.key)
        if row.prompt_digest:
            prompts.add(row.prompt_digest)
        views.append(view)
    return views


def _bodies(rows: list[ModelCall]) -> dict[str, bytes] | None:
    """What these calls said, loaded at once; None where something is damaged, and each is tried."""
    digests = {digest for row in rows for digest in (row.request_digest, row.response_digest)}
    try:
        return load_all_packed(digests - {""})
    except CorruptStore:
        return None


def _events(
    environment: Environment, since: datetime | None, until: datetime | None
) -> list[Entry]:
    if environment.step_id is None:
        return []
    rows = Event.objects.filter(step=environment.step_id).select_related("actor")
    if since is not None:
        rows = rows.filter(at__gt=since)
    if until is not None:
        rows = rows.filter(at__lte=until)
    return [Entry(event.at, event=event) for event in rows.order_by("id")[:EVENT_CAP]]


def view_call(
    row: ModelCall, *, is_whole: bool = False, bodies: Mapping[str, bytes] | None = None
) -> CallView:
    """A call made ready to be shown; one whose stored words are damaged says so.

    `bodies` holds what was loaded already, by digest.
    """
    digests = list(filter(None, (row.request_digest, row.response_digest)))
    try:
        found = bodies or load_all_packed(digests)
    except CorruptStore as error:
        return CallView(row, (), (), str(error))
    asked = new_in_request(found.get(row.request_digest, b""))
    answered = answer_of(found.get(row.response_digest, b""))
    return CallView(
        row,
        tuple(_said(one, is_whole=is_whole) for one in asked),
        tuple(_said(one, is_whole=is_whole) for one in answered),
    )


_LABELS = {
    Speaker.SYSTEM: "prompt",
    Speaker.USER: "asked",
    Speaker.MODEL: "answer",
    Speaker.TOOL: "result",
    Speaker.HARNESS: "told to mend",
}


def _said(one: Utterance, *, is_whole: bool) -> Said:
    label = _LABELS[one.speaker]
    if one.is_call:
        label = "calls"
    if one.is_thought:
        label = "thinks"
    is_own = one.speaker is Speaker.MODEL and not one.is_thought
    tone = "own" if is_own else one.speaker.value
    return spoken(f"{label} {one.tool}".strip(), tone, one.text, is_whole=is_whole)


def spoken(label: str, tone: str, text: str, *, is_whole: bool = False) -> Said:
    """A part of a conversation, cut to what a page shows of it."""
    cap, lines = (WHOLE_CAP, WHOLE_LINES) if is_whole else (PART_CAP, PART_LINES)
    shown: Excerpt = excerpt(text, cap=cap, lines=lines)
    is_long = shown.text.count("\n") > 14 or len(shown.text) > 1_200
    return Said(label, tone, shown.text, shown.cut, is_long)


def get_call(pk: int) -> ModelCall:
    """A call with its run, step and environment, or 404."""
    rows = ModelCall.objects.select_related("run", "step__lineage", "environment").defer("text")
    return get_object_or_404(rows, pk=pk)


def list_calls(
    rows: QuerySet[ModelCall], *, words: str, role: str, outcome: str, before: int | None
) -> list[ModelCall]:
    """Calls, newest first, one more than a page holds. `outcome` may be "faults"."""
    found = said(rows.filter(TO_MODELS), words)
    if role:
        found = found.filter(role=role)
    if outcome == "faults":
        found = found.exclude(outcome=CallOutcome.ANSWERED, reason="")
    elif outcome:
        found = found.filter(outcome=outcome)
    if before is not None:
        found = found.filter(id__lt=before)
    return list(found.select_related("environment").defer("text").order_by("-id")[: PAGE_ROWS + 1])


def export_lines(rows: QuerySet[ModelCall]) -> Iterator[bytes]:
    """Calls as JSON Lines, oldest first, each whole. Keys were never stored, so none is in here."""
    last = 0
    while True:
        batch = list(rows.filter(id__gt=last).defer("text").order_by("id")[:EXPORT_BATCH])
        if not batch:
            return
        for row in batch:
            yield json.dumps(_export(row), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        last = batch[-1].pk


def _export(row: ModelCall) -> dict[str, Any]:
    return {
        "id": row.pk,
        "at": row.created_at.isoformat(),
        "run": row.run_id,
        "step": row.step_id,
        "environment": row.environment_id,
        "place": row.place,
        "key": row.key,
        "role": row.role,
        "model": row.model,
        "prompt_digest": row.prompt_digest,
        "attempt": row.attempt,
        "outcome": row.outcome,
        "reason": row.reason,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cached_tokens": row.cached_tokens,
        "usd": row.usd,
        "is_estimated": row.is_estimated,
        "seconds": row.seconds,
        "request": _body(row.request_digest),
        "response": _body(row.response_digest),
    }


def _body(digest: str) -> Any:
    """A stored body as JSON, or as text where it is none."""
    if not digest:
        return None
    data = load_packed(digest)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
