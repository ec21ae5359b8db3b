"""Trials of the gates, recorded once, whole, and recalled as they were."""

from __future__ import annotations

import json

import msgspec
import zstandard
from django.db import IntegrityError, transaction

from evolution.gates.desk import MACHINERY
from evolution.plain_text import plain
from sandbox.choice import is_followed
from sandbox.contracts import Outcome, TrialResult
from webapp.lifecycle import TrialStatus
from webapp.models import Trial, Verification

_STATUS = {
    Outcome.PASS: TrialStatus.COMPLETED,
    Outcome.FAIL: TrialStatus.COMPLETED,
    Outcome.INVALID_REWARD: TrialStatus.ERRORED,
    Outcome.INFRA_ERROR: TrialStatus.ERRORED,
    Outcome.CANCELLED: TrialStatus.CANCELLED,
}


def record_trial(
    verification: Verification,
    *,
    key: str,
    solver: str,
    repetition: int,
    gate: str,
    result: TrialResult,
) -> bool:
    """Keep a trial for good; False when it was recorded before."""
    is_graded = result.outcome in (Outcome.PASS, Outcome.FAIL)
    try:
        with transaction.atomic():
            Trial.objects.create(
                verification=verification,
                gate=gate,
                solver=solver,
                repetition=repetition,
                key=key,
                status=_STATUS[result.outcome],
                outcome=result.outcome,
                reward=result.reward if is_graded else None,
                solver_end=result.solver_end,
                error=plain(result.error),
                seconds=result.seconds,
                sandboxes=result.sandboxes,
                backend=result.backend,
                solver_seconds=dict(result.phases).get("solver"),
                cpu_seconds=result.usage.cpu_seconds,
                peak_memory_bytes=result.usage.peak_memory_bytes,
                is_traced=is_followed(result),
                record=pack_result(result),
            )
    except IntegrityError:
        return False
    return True


def recall_trial(
    verification: Verification, *, key: str, solver: str, repetition: int
) -> TrialResult | None:
    """The recorded result of this very trial, or None."""
    row = (
        Trial.objects.filter(
            verification=verification, solver=solver, repetition=repetition, key=key
        )
        .exclude(outcome__in=MACHINERY)
        .only("record")
        .first()
    )
    return None if row is None else unpack_result(bytes(row.record))


def pack_result(result: TrialResult) -> bytes:
    """A result as compressed JSON, names of files that are no UTF-8 included."""
    try:
        data = msgspec.json.encode(result)
    except UnicodeEncodeError:  # a name on disk is bytes, and msgspec writes UTF-8 only
        data = json.dumps(msgspec.to_builtins(result)).encode()
    return zstandard.compress(data, 3)


def unpack_result(data: bytes) -> TrialResult:
    """What `pack_result` made."""
    text = zstandard.decompress(data)
    try:
        return msgspec.json.decode(text, type=TrialResult)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(text), TrialResult)
