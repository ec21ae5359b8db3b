"""Calls to models: kept at once and for good, found again by their key, summed up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from evolution.llm.budget import STEP_STOP
from evolution.llm.calls import CallOutcome, CallRecord, Role, Usage
from evolution.plain_text import plain
from evolution.transcripts import answer_of, new_in_request
from webapp.models import CallReservation, Environment, EvolutionRun, EvolutionStep, ModelCall
from webapp.models.call import LAST
from webapp.presentation.text import clean
from webapp.store import load_packed, save_packed

TEXT_CAP = 60_000
"""How much of what a call newly said can be searched, in characters."""
TOKEN_CAP = 2**53
SECONDS_CAP = USD_CAP = 1e8


@dataclass(frozen=True, slots=True)
class Place:
    """On whose behalf calls are made: a step of a run, or an environment that is measured."""

    run: EvolutionRun | None = None
    step: EvolutionStep | None = None
    environment: Environment | None = None

    @property
    def scope(self) -> Q:
        """The calls among which an answered one is never made again."""
        if self.run is not None:
            return Q(run=self.run)
        return Q(run=None, environment=self.environment)


def reserve_call(
    place: Place, expected: Usage, seconds: float, fits: Callable[[Usage], None]
) -> int | None:
    """Set aside what a call of a run is expected to take; returns the reservation's id.

    `fits` is told what the run's calls took and what is set aside, and raises where there is no
    room. All processes line up for that, so that two never take the same room. Calls of no run
    share no budget: nothing is set aside for them.
    """
    run = place.run
    if run is None:
        fits(Usage())
        return None
    now = timezone.now()
    with transaction.atomic():
        _line_up(run)
        fits(sum_usage(place.scope) + _set_aside(run, now))
        row = CallReservation.objects.create(
            run=run,
            step=place.step,
            tokens=expected.tokens,
            usd=expected.usd,
            expires_at=now + timedelta(seconds=seconds),
        )
    return row.pk


def forget_reservations(place: Place) -> None:
    """Give back what was set aside for a step by a worker that is gone."""
    if place.step is not None:
        CallReservation.objects.filter(step=place.step).delete()


def _set_aside(run: EvolutionRun, now: datetime) -> Usage:
    """What the calls in flight are expected to take, all as input tokens."""
    found = run.reservations.filter(expires_at__gt=now).aggregate(
        tokens=Sum("tokens"), usd=Sum("usd")
    )
    return Usage(int(found["tokens"] or 0), usd=float(found["usd"] or 0.0))


def _line_up(run: EvolutionRun) -> None:
    """Wait for whoever else looks at this run's budget; holds to the end of the transaction.

    A lock of its own, for the run's row is others' to change.
    """
    with connection.cursor() as cursor:
        name = f"calls of run {run.pk}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def store_call(place: Place, call: CallRecord, reserved: int | None = None) -> int:
    """Keep a call, answered or not; returns its id. What was `reserved` for it is given back.

    Should another worker have kept the answer first, what this one cost is kept all the same.
    """
    usage, is_odd = _sane(call.usage)
    row = ModelCall(
        run=place.run,
        step=place.step,
        environment=place.environment,
        place=plain(call.place),
        key=call.key,
        role=call.role,
        model=plain(call.model)[:200],
        prompt_digest=call.prompt_digest[:64],
        attempt=call.attempt,
        outcome=call.outcome,
        reason=plain(call.reason)[:2_000],
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        usd=usage.usd,
        is_estimated=usage.is_estimated or is_odd,
        seconds=min(_finite(call.seconds), SECONDS_CAP),
        request_digest=save_packed(call.request) if call.request else "",
        response_digest=save_packed(call.response) if call.response else "",
        text=_searchable(call),
    )
    with transaction.atomic():
        if place.run is not None and reserved is not None:
            # At one moment for whoever looks at the budget: never counted twice, nor not at all.
            _line_up(place.run)
            CallReservation.objects.filter(pk=reserved).delete()
        _save_once(row)
    return row.pk


def _save_once(row: ModelCall) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        row.outcome, row.reason = CallOutcome.CANCELLED, "another worker had the answer first"
        row.save()


def find_call(scope: Q, key: str) -> tuple[int, CallRecord] | None:
    """The first record with that key that ended its call, with its id. Raises CorruptStore."""
    row = ModelCall.objects.filter(scope, LAST, key=key).order_by("pk").first()
    return None if row is None else (row.pk, read_call(row))


def find_step_stop(run: EvolutionRun, key: str) -> str:
    """Why a step of that run ended before this call was ever answered; empty where it did not."""
    rows = ModelCall.objects.filter(
        run=run, key=key, outcome=CallOutcome.BUDGET, reason__startswith=STEP_STOP
    )
    return rows.values_list("reason", flat=True).order_by("-id").first() or ""


def read_call(row: ModelCall) -> CallRecord:
    """A stored call as the harness knows it. Raises CorruptStore."""
    return CallRecord(
        key=row.key,
        place=row.place,
        role=Role(row.role),
        model=row.model,
        prompt_digest=row.prompt_digest,
        attempt=row.attempt,
        outcome=CallOutcome(row.outcome),
        reason=row.reason,
        request=load_packed(row.request_digest) if row.request_digest else b"",
        response=load_packed(row.response_digest) if row.response_digest else b"",
        usage=Usage(
            row.input_tokens, row.output_tokens, row.cached_tokens, row.usd, row.is_estimated
        ),
        seconds=row.seconds,
    )


def sum_usage(scope: Q) -> Usage:
    """What all calls of a scope took together."""
    found = ModelCall.objects.filter(scope).aggregate(
        input_tokens=Sum("input_tokens"),
        output_tokens=Sum("output_tokens"),
        cached_tokens=Sum("cached_tokens"),
        usd=Sum("usd"),
        guessed=Count("id", filter=Q(is_estimated=True)),
    )
    return Usage(
        int(found["input_tokens"] or 0),
        int(found["output_tokens"] or 0),
        int(found["cached_tokens"] or 0),
        float(found["usd"] or 0.0),
        bool(found["guessed"]),
    )


def give_to_environment(ids: Iterable[int], environment: Environment) -> None:
    """Say which candidate these calls led to; those that led to one already keep it."""
    ModelCall.objects.filter(pk__in=list(ids), environment=None).update(environment=environment)


def _searchable(call: CallRecord) -> str:
    told = (*new_in_request(call.request), *answer_of(call.response))
    words = "\n".join(f"{one.tool} {one.text[:TEXT_CAP]}".strip() for one in told)
    return clean(words[:TEXT_CAP])[:TEXT_CAP]


def _sane(usage: Usage) -> tuple[Usage, bool]:
    """Usage that can be stored and summed; whether something had to be put right."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    read, written, cached = (int(min(_finite(count), TOKEN_CAP)) for count in counts)
    usd = min(_finite(usage.usd), USD_CAP)
    is_odd = (read, written, cached) != counts or usd != usage.usd
    return Usage(read, written, cached, usd, usage.is_estimated), is_odd


def _finite(value: float) -> float:
    return value if math.isfinite(value) and value > 0 else 0
