"""Calls to language models: every attempt at every one, kept for good."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q

from evolution.llm.calls import PAID_ATTEMPTS, SANDBOX, CallOutcome
from evolution.llm.calls import Role as Caller
from webapp.models.environment import Environment
from webapp.models.run import EvolutionRun, EvolutionStep

SEARCH_CONFIG = "simple"
"""Words as they are written: transcripts are code, names and paths more than prose."""

TO_MODELS = ~Q(model=SANDBOX)
"""Leaves out what tools gave, which is kept in the same way."""
FINAL = [outcome.value for outcome in CallOutcome if outcome.is_final]
LAST = Q(outcome__in=FINAL) | Q(outcome=CallOutcome.TOO_LARGE, attempt__gte=PAID_ATTEMPTS)
"""The attempts that ended their call for good; see `CallRecord.is_last`."""


class ModelCall(models.Model):
    """One attempt at one call, or what a tool gave in a sandbox (`model` is SANDBOX).

    A call of a run that has its final outcome is never made again.

    `place` names where in the work it stands, `key` is the digest of place and request. Request
    and response lie compressed in blobs, as canonical JSON; `text` is what was newly said in
    both, without escapes and cut, for the search. `environment` is the candidate that the call
    led to, or the one that was measured; None where it led to none.
    """

    run = models.ForeignKey(
        EvolutionRun, null=True, blank=True, on_delete=models.PROTECT, related_name="calls"
    )
    step = models.ForeignKey(
        EvolutionStep, null=True, blank=True, on_delete=models.PROTECT, related_name="calls"
    )
    environment = models.ForeignKey(
        Environment, null=True, blank=True, on_delete=models.PROTECT, related_name="calls"
    )
    place = models.TextField()
    key = models.CharField(max_length=64)
    role = models.CharField(max_length=20, choices=[(r.value, r.value) for r in Caller])
    model = models.CharField(max_length=200)
    prompt_digest = models.CharField(max_length=64, blank=True)
    attempt = models.PositiveIntegerField(default=1)
    outcome = models.CharField(max_length=20, choices=[(o.value, o.value) for o in CallOutcome])
    reason = models.TextField(blank=True)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    usd = models.FloatField(default=0.0)
    is_estimated = models.BooleanField(default=False)
    seconds = models.FloatField(default=0.0)
    request_digest = models.CharField(max_length=64, blank=True)
    response_digest = models.CharField(max_length=64, blank=True)
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "key"],
                condition=Q(outcome__in=FINAL),
                name="call_answered_once",
            ),
            models.UniqueConstraint(
                fields=["environment", "key"],
                condition=Q(outcome__in=FINAL, run__isnull=True),
                name="call_answered_once_outside_runs",
            ),
            models.CheckConstraint(
                condition=Q(outcome__in=[o.value for o in CallOutcome]), name="call_outcome_known"
            ),
            models.CheckConstraint(
                condition=Q(
                    input_tokens__gte=0, output_tokens__gte=0, cached_tokens__gte=0, usd__gte=0
                )
                & Q(usd__lt=1e9),  # NaN is larger than every number
                name="call_usage_sane",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["step", "id"], name="call_step"),
            models.Index(fields=["run", "role"], name="call_run_role"),
            GinIndex(SearchVector("text", config=SEARCH_CONFIG), name="call_words"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.outcome} at {self.place}"[:120]

    @property
    def is_spoiled(self) -> bool:
        """Whether it came as an answer, and something was wrong with that."""
        return self.outcome == CallOutcome.ANSWERED and bool(self.reason)

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


class CallReservation(models.Model):
    """What a call of a run that is under way is expected to take, in any process.

    It is made together with the look at the budget, and goes when the call is on record. That of
    a worker that was killed counts until `expires_at`, or until its step is taken up again.
    """

    run = models.ForeignKey(EvolutionRun, on_delete=models.CASCADE, related_name="reservations")
    step = models.ForeignKey(EvolutionStep, null=True, blank=True, on_delete=models.CASCADE)
    tokens = models.BigIntegerField()
    usd = models.FloatField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.tokens} tokens of run {self.run_id}"
