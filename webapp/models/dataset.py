"""Datasets: named sets of approved environments, frozen into immutable versions."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone


class Dataset(models.Model):
    """A dataset that people know by its name."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=100, unique=True)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    """A frozen version: members and their digests never change.

    `digest` is SHA-256 in hex over the sorted member digests. `frozen` is msgspec JSON of the
    engine's `FrozenDataset`: all that an export says, as it was when the version was frozen.
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    member_count = models.PositiveIntegerField()
    notes = models.TextField(blank=True)
    frozen = models.JSONField(default=dict)
    frozen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    frozen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset_id} v{self.number}"


class DatasetMember(models.Model):
    """An environment in a frozen version, under the digest that was frozen."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="members")
    environment = models.ForeignKey(
        "Environment", on_delete=models.PROTECT, related_name="memberships"
    )
    digest = models.CharField(max_length=64)
    name = models.CharField(max_length=200)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["version", "environment"], name="dataset_member_once"),
            models.UniqueConstraint(fields=["version", "name"], name="dataset_member_name_once"),
        ]

    def __str__(self) -> str:
        return self.name
