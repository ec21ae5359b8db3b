"""Verifications: a run of the gates, its trials, and what each gate answered."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from evolution.contracts import GateStatus
from evolution.gates.policy import Depth
from sandbox.choice import HOST_ROOT
from sandbox.contracts import Outcome, SolverEnd
from webapp.lifecycle import TrialStatus

ALL_GATES = "all"
"""What `Verification.renewed` says when no earlier answer counts."""


class Verification(models.Model):
    """One run of the gates over one environment; a re-run makes a new row, never an edit."""

    environment = models.ForeignKey(
        "Environment", on_delete=models.PROTECT, related_name="verifications"
    )
    number = models.PositiveIntegerField()
    status = models.CharField(
        max_length=10, choices=TrialStatus.choices, default=TrialStatus.QUEUED
    )
    verdict = models.CharField(
        max_length=14, blank=True, choices=[(s.value, s.value) for s in GateStatus]
    )
    protocol = models.CharField(max_length=64, blank=True)
    """Which versions of the gates spoke: stale when it is not the current one."""

    depth = models.CharField(
        max_length=5, choices=[(d.value, d.value) for d in Depth], default=Depth.QUICK.value
    )
    """How much was asked: what an evolution step can afford, or everything."""

    renewed = models.CharField(max_length=40, blank=True)
    """The one gate to be asked anew, or ALL_GATES; the others may repeat an earlier answer."""

    parts_digest = models.CharField(max_length=64, blank=True)
    """The proof that was judged (see `Environment.parts_digest`); empty where there is none."""

    backend = models.CharField(max_length=40, blank=True)
    """What ran the trials that the verdict rests on; several are joined by ", "."""

    attempt = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    sandboxes = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["environment", "number"], name="verification_number"),
            models.CheckConstraint(
                condition=Q(status__in=TrialStatus.values), name="verification_status_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status=TrialStatus.RUNNING),
                name="verification_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"verification {self.number} of {self.environment_id}"

    @property
    def is_on_image(self) -> bool | None:
        """Whether every trial ran on the environment's own image; None where it is not known."""
        return HOST_ROOT not in self.backend.split(", ") if self.backend else None


def on_host_root(prefix: str = "") -> Q:
    """Verifications that rest on this machine's own `/usr`, at least in part."""
    whole, first = f"{prefix}backend", f"{prefix}backend__startswith"
    return Q(**{whole: HOST_ROOT}) | Q(**{first: f"{HOST_ROOT}, "})  # the names are in order


class Trial(models.Model):
    """One trial of a gate. `record` is the whole result (msgspec JSON, zstd), for recall.

    `solver_seconds`, `cpu_seconds` and `peak_memory_bytes` are taken out of it for tables; None
    where they were not measured.

    Trials that the machinery spoiled stay for people to see, and may be repeated.
    """

    verification = models.ForeignKey(Verification, on_delete=models.PROTECT, related_name="trials")
    gate = models.CharField(max_length=40)
    solver = models.CharField(max_length=120)
    repetition = models.PositiveIntegerField(default=1)
    key = models.CharField(max_length=64)
    status = models.CharField(max_length=10, choices=TrialStatus.choices)
    outcome = models.CharField(max_length=16, choices=[(o.value, o.value) for o in Outcome])
    reward = models.FloatField(null=True, blank=True)
    solver_end = models.CharField(max_length=16, choices=[(e.value, e.value) for e in SolverEnd])
    error = models.TextField(blank=True)
    seconds = models.FloatField()
    sandboxes = models.PositiveSmallIntegerField()
    backend = models.CharField(max_length=40)
    solver_seconds = models.FloatField(null=True, blank=True)
    cpu_seconds = models.FloatField(null=True, blank=True)
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True)
    is_traced = models.BooleanField(default=False)
    record = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["verification", "solver", "repetition"],
                condition=~Q(outcome__in=[Outcome.INFRA_ERROR, Outcome.CANCELLED]),
                name="trial_once",
            ),
            models.CheckConstraint(
                condition=Q(status__in=TrialStatus.values), name="trial_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status=TrialStatus.COMPLETED, reward__isnull=False)
                | (~Q(status=TrialStatus.COMPLETED) & Q(reward__isnull=True)),
                name="trial_reward_iff_completed",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["verification", "key"], name="trial_key")]

    def __str__(self) -> str:
        return f"{self.solver} {self.repetition}"


class GateRecord(models.Model):
    """What one gate answered in one verification. `evidence` is msgspec JSON of `Evidence`.

    `cache_key` names the question: equal keys, equal questions; empty where nothing is repeated.
    An answer that was given before has the verification that gave it as its `source`, and its
    evidence names trials of that one.
    """

    verification = models.ForeignKey(Verification, on_delete=models.PROTECT, related_name="gates")
    position = models.PositiveSmallIntegerField()
    gate = models.CharField(max_length=40)
    version = models.PositiveIntegerField()
    status = models.CharField(max_length=14, choices=[(s.value, s.value) for s in GateStatus])
    reason = models.TextField()
    is_blocking = models.BooleanField(default=True)
    evidence = models.JSONField(default=list)
    figures = models.JSONField(default=dict)
    seconds = models.FloatField(default=0.0)
    cache_key = models.CharField(max_length=64, blank=True, db_index=True)
    source = models.ForeignKey(
        Verification, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["verification", "gate"], name="gate_once"),
        ]

    def __str__(self) -> str:
        return f"{self.gate}: {self.status}"

    @property
    def is_reused(self) -> bool:
        """Whether the answer is an earlier verification's."""
        return self.source_id is not None
