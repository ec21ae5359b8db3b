"""Imports: everything that is found is written down, taken in or refused."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from evolution.found import Found, Refusal
from evolution.plain_text import plain
from webapp.models import Import, ImportEntry, ImportOutcome, User
from webapp.services import environments

TEXT_CAP = 2_000
"""Characters of a place or a reason that are kept."""


def open_import(
    sources: Sequence[str], *, tags: Sequence[str] = (), user: User | None = None
) -> Import:
    """Begin an import of these paths."""
    shown = [_kept(source) for source in sources]
    return Import.objects.create(sources=shown, tags=sorted(map(_kept, tags)), created_by=user)


def take_found(batch: Import, position: int, found: Found) -> ImportEntry:
    """Take one thing in as a seed, or note why not; its entry, as it is stored."""
    entry = ImportEntry(batch=batch, position=position, origin=_kept(found.origin))
    if isinstance(found, Refusal):
        entry.outcome = ImportOutcome.REFUSED
        entry.file, entry.reason = _kept(found.file), _kept(found.reason)
        entry.save()
        return entry
    with transaction.atomic():  # a seed without its entry would make the count wrong
        environment, is_new = environments.import_seed(
            found.bundle, name=found.name, origin=found.origin, tags=batch.tags
        )
        entry.outcome = ImportOutcome.IMPORTED if is_new else ImportOutcome.KNOWN
        entry.environment = environment
        entry.notes = [_kept(f"{note.path}: {note.reason}") for note in found.warnings]
        entry.save()
    return entry


def close_import(batch: Import) -> None:
    """Note that everything was looked at."""
    batch.finished_at = timezone.now()
    batch.save(update_fields=["finished_at"])


def _kept(text: str) -> str:
    """Text that the database takes and a person can read: one line, nothing unseen."""
    return plain(text)[:TEXT_CAP]
