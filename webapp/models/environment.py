"""Environments, their lineages, and the content-addressed store of their files."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from evolution.directions import Aspect, Direction, Effect, Effort
from evolution.gates.policy import Policy
from webapp.lifecycle import ReviewStatus, VerificationStatus


class Blob(models.Model):
    """Some bytes, stored once; `digest` is their SHA-256 in hex."""

    digest = models.CharField(primary_key=True, max_length=64)
    size_bytes = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(size_bytes__gte=0), name="blob_size_not_negative"),
        ]

    def __str__(self) -> str:
        return self.digest[:8]


class Lineage(models.Model):
    """A tree of environments that grew from one seed."""

    name = models.CharField(max_length=200)
    licence = models.CharField(max_length=200, blank=True)
    origin = models.CharField(max_length=500, blank=True)
    tags = models.JSONField(default=list, blank=True)
    seed_digest = models.CharField(max_length=64, unique=True)
    node_count = models.PositiveIntegerField(default=0)
    max_generation = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class EnvironmentKind(models.TextChoices):
    """Where an environment came from; decides which gates block. A revision keeps its parent's."""

    IMPORTED = "imported"
    EVOLVED = "evolved"


def _known(field: str, choices: type[models.TextChoices]) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": choices.values}), name=f"environment_{field}_known"
    )


SOLVED = "solved"
"""The operator of a revision that was given the reference solution that its parent lacks."""


class Environment(models.Model):
    """An immutable bundle and its place in a lineage.

    `manifest` lists the files as [path, mode, digest, size_bytes, link]. `path` orders the tree
    depth first: the parent's path plus three base-36 digits of the node's ordinal among siblings.
    `sequence`, `demands` and `parts` are msgspec JSON of the engine's values; `parts` (the
    mutation's proof: adaptation, naive, control …) lies compressed in a blob.
    """

    lineage = models.ForeignKey(Lineage, on_delete=models.PROTECT, related_name="environments")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    generation = models.PositiveIntegerField()
    path = models.CharField(max_length=400)
    kind = models.CharField(max_length=10, choices=EnvironmentKind.choices)
    name = models.CharField(max_length=200)
    title = models.CharField(max_length=300)
    why = models.TextField(blank=True)

    digest = models.CharField(max_length=64, db_index=True)
    harbor_digest = models.CharField(max_length=64)
    manifest = models.JSONField()
    instruction = models.TextField()
    root_instruction = models.TextField()
    sequence = models.JSONField(default=list)
    demands = models.JSONField(default=list)
    parts_digest = models.CharField(max_length=64, blank=True)
    has_solution = models.BooleanField(default=True)

    direction = models.CharField(
        max_length=10, blank=True, choices=[(d.value, d.value) for d in Direction]
    )
    aspect = models.CharField(
        max_length=12, blank=True, choices=[(a.value, a.value) for a in Aspect]
    )
    effect = models.CharField(
        max_length=12, blank=True, choices=[(e.value, e.value) for e in Effect]
    )
    effort = models.CharField(
        max_length=4, blank=True, choices=[(e.value, e.value) for e in Effort]
    )
    operator = models.CharField(max_length=60, blank=True)
    notch = models.PositiveSmallIntegerField(default=0)
    repair = models.PositiveSmallIntegerField(default=0)

    verification = models.CharField(
        max_length=10, choices=VerificationStatus.choices, default=VerificationStatus.PENDING
    )
    review = models.CharField(
        max_length=20, choices=ReviewStatus.choices, default=ReviewStatus.UNREVIEWED
    )
    current_verification = models.ForeignKey(
        "Verification", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    run = models.ForeignKey(
        "EvolutionRun",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="environments",
    )
    step = models.ForeignKey(
        "EvolutionStep",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="candidates",
    )
    failure = models.CharField(max_length=500, blank=True)
    """The first blocking gate that failed, and its reason, in one line."""

    demands_live = models.PositiveSmallIntegerField(default=0)
    demands_bite = models.PositiveSmallIntegerField(null=True, blank=True)
    d_t = models.FloatField(null=True, blank=True)
    """Policy-free difficulty, in nats."""

    change_rates = models.JSONField(default=dict, blank=True)
    """Mutation rates against parent and root: {"parent": {...}, "root": {...}}."""

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            _known("verification", VerificationStatus),
            _known("review", ReviewStatus),
            _known("kind", EnvironmentKind),
            models.CheckConstraint(
                condition=Q(parent__isnull=True, generation=0)
                | Q(parent__isnull=False, generation__gt=0),
                name="environment_root_iff_generation_0",
            ),
            models.CheckConstraint(
                condition=~Q(review=ReviewStatus.APPROVED)
                | Q(verification=VerificationStatus.VALID),
                name="environment_approved_only_if_valid",
            ),
            models.CheckConstraint(
                condition=Q(demands_bite__isnull=True) | Q(demands_bite__lte=F("demands_live")),
                name="environment_bite_within_live",
            ),
            models.UniqueConstraint(
                fields=["parent", "digest"], name="environment_once_per_parent"
            ),
            models.UniqueConstraint(fields=["lineage", "path"], name="environment_path_once"),
            models.UniqueConstraint(
                fields=["digest"], condition=Q(parent__isnull=True), name="environment_seed_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["verification", "review", "-id"], name="environment_queue"),
            models.Index(fields=["run", "-id"], name="environment_run"),
            models.Index(fields=["operator", "-id"], name="environment_operator"),
            models.Index(fields=["generation", "-id"], name="environment_generation"),
            models.Index(fields=["direction", "aspect", "-id"], name="environment_cell"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.digest[:8]}"

    @property
    def short_digest(self) -> str:
        """The first eight digits of the digest."""
        return self.digest[:8]

    @property
    def is_revision(self) -> bool:
        """Whether this is its parent put right: a child without direction and demand."""
        return self.parent_id is not None and not (self.direction or self.parts_digest)

    @property
    def policy(self) -> Policy:
        """By where it came from: a revision of what was imported is still somebody else's work."""
        return Policy.IMPORTED if self.kind == EnvironmentKind.IMPORTED else Policy.MADE

    @property
    def is_seed(self) -> bool:
        """Whether this is generation 0."""
        return self.parent_id is None
