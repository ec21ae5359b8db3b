"""Difficulty: structural, policy-free and measured numbers, never mixed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class SolverKind(models.TextChoices):
    """Where a solver's trials come from."""

    LLM = "llm", "Terminal agent"
    HARBOR = "harbor", "Harbor job"
    IMPORTED = "imported", "Imported"
    SIMULATED = "simulated", "Simulated (no evidence)"


class Solver(models.Model):
    """Something that attempts environments."""

    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=10, choices=SolverKind.choices)

    def __str__(self) -> str:
        return self.name


class MeasuredTrial(models.Model):
    """One attempt by a real solver. `environment` is null until one of that name is known."""

    solver = models.ForeignKey(Solver, on_delete=models.PROTECT, related_name="trials")
    environment = models.ForeignKey(
        "Environment", null=True, blank=True, on_delete=models.PROTECT, related_name="measured"
    )
    environment_name = models.CharField(max_length=200, db_index=True)
    number = models.PositiveIntegerField()
    is_passed = models.BooleanField()
    counts = models.BooleanField(default=True)
    """False for verifier-phase and machinery faults, which say nothing about the environment."""

    cause = models.CharField(max_length=60, blank=True)
    input_tokens = models.BigIntegerField(null=True, blank=True)
    output_tokens = models.BigIntegerField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    usd = models.FloatField(null=True, blank=True)
    reward = models.FloatField(null=True, blank=True)
    trajectory_digest = models.CharField(max_length=64, blank=True)
    """The compressed ATIF trajectory, where one was kept; likewise the cast and the output."""

    cast_digest = models.CharField(max_length=64, blank=True)
    output_digest = models.CharField(max_length=64, blank=True)
    source = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["solver", "environment_name", "number"], name="measured_trial_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.solver_id} on {self.environment_name} #{self.number}"


class Measure(models.TextChoices):
    """What a score says. D_T and its parts are in nats."""

    DEMANDS = "demands", "Live demands"
    LENGTH = "length", "Length of the sequence"
    SCENARIO_RARITY = "scenario_rarity", "Mean scenario rarity"
    SKILL_RARITY = "skill_rarity", "Mean skill rarity"
    D_T = "d_t", "Policy-free difficulty D_T"
    PASS_RATE = "pass_rate", "Measured pass rate"


class DifficultyScore(models.Model):
    """One number about one environment, with its n and interval where it is an estimate."""

    environment = models.ForeignKey("Environment", on_delete=models.CASCADE, related_name="scores")
    measure = models.CharField(max_length=20, choices=Measure.choices)
    solver = models.ForeignKey(Solver, null=True, blank=True, on_delete=models.CASCADE)
    value = models.FloatField()
    n = models.PositiveIntegerField(default=0)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    basis = models.CharField(max_length=80, blank=True)
    """What the number rests on: the digest of the reference corpus, the source of the trials."""

    computed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["environment", "measure", "solver"],
                nulls_distinct=False,
                name="difficulty_score_once",
            ),
            models.CheckConstraint(
                condition=Q(measure__in=Measure.values), name="difficulty_measure_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.measure} {self.value:.3g}"
