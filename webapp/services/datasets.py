"""Datasets: approved environments, frozen into immutable versions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
from django.db import transaction
from django.db.models import Max
from django.utils.text import slugify

from webapp.lifecycle import ReviewStatus
from webapp.models import Dataset, DatasetMember, DatasetVersion, Environment, Role, User
from webapp.services.errors import InvalidInput, NotAllowed
from webapp.services.events import append_event
from webapp.services.exports import describe


def freeze(
    name: str, environment_ids: Sequence[int], user: User | None, notes: str = ""
) -> DatasetVersion:
    """Freeze approved environments as the next version of a dataset, made when it is new.

    Raises NotAllowed below curator, InvalidInput when a member is not approved.
    """
    if user is not None and not user.has_role(Role.CURATOR):
        raise NotAllowed("only curators freeze datasets; ask one")
    slug = slugify(name)
    if not slug or len(name) > 100 or not name.isprintable():
        raise InvalidInput("give the dataset a name of 1 to 100 letters or digits", "name")
    with transaction.atomic():
        members = list(
            Environment.objects.select_for_update()
            .filter(pk__in=set(environment_ids))
            .order_by("lineage_id", "path")
        )
        _check_members(members, environment_ids)
        dataset, _ = Dataset.objects.get_or_create(slug=slug, defaults={"name": name})
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        number = (dataset.versions.aggregate(n=Max("number"))["n"] or 0) + 1
        digests = "\n".join(sorted(member.digest for member in members))
        version = DatasetVersion.objects.create(
            dataset=dataset,
            number=number,
            digest=hashlib.sha256(digests.encode()).hexdigest(),
            member_count=len(members),
            notes=notes,
            frozen_by=user,
        )
        DatasetMember.objects.bulk_create(
            DatasetMember(
                version=version, environment=member, digest=member.digest, name=folder_name(member)
            )
            for member in members
        )
        frozen = describe(version)
        version.frozen = {**msgspec.to_builtins(frozen), "basis": frozen.basis}
        version.save(update_fields=["frozen"])
        append_event(
            "dataset.frozen",
            f"{dataset.name} v{number}: {len(members)} environments",
            actor=user,
            facts={"dataset": dataset.pk, "version": number, "digest": version.digest},
        )
    return version


def folder_name(environment: Environment) -> str:
    """The folder of an environment in an export: its seed's name, generation and digest."""
    base = slugify(environment.name.rsplit("/", 1)[-1]) or "environment"
    return f"{base[:100]}-g{environment.generation}-{environment.short_digest}"


def _check_members(members: Sequence[Environment], asked: Sequence[int]) -> None:
    if not members:
        raise InvalidInput("choose at least one approved environment", "environments")
    if len(members) != len(set(asked)):
        raise InvalidInput("some of the chosen environments no longer exist", "environments")
    for member in members:
        if member.review != ReviewStatus.APPROVED:
            raise InvalidInput(
                f"{member.name} {member.short_digest} is not approved; review it first",
                "environments",
            )
