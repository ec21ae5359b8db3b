"""Verifications: asked for, carried out, recorded; a re-run is a new row."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from django.db import transaction
from django.db.models import Count, Max, QuerySet, Sum
from django.utils import timezone

from evolution.contracts import Evidence, GateResult, GateStatus, Verdict
from evolution.gates.desk import MACHINERY
from evolution.gates.protocol import PROTOCOL_VERSION, Depth
from webapp import dispatch
from webapp.lifecycle import ReviewStatus, TrialStatus, VerificationStatus
from webapp.models import Environment, GateRecord, Trial, Verification
from webapp.models.trial import ALL_GATES
from webapp.services import transitions
from webapp.services.difficulty import store_scores

_STATUS_OF_VERDICT = {
    GateStatus.PASSED: VerificationStatus.VALID,
    GateStatus.FAILED: VerificationStatus.INVALID,
    GateStatus.INCONCLUSIVE: VerificationStatus.ERRORED,
}

MAX_ERRORED = 3
"""After so many verifications that the machinery spoiled, nothing is tried again by itself."""


def request_verification(
    environment: Environment, depth: Depth = Depth.QUICK, renew: str = ""
) -> bool:
    """Queue a verification unless one is open; False when it was given up (see MAX_ERRORED).

    `renew` names a gate that is to be asked anew, or is ALL_GATES; a person who says so is never
    told that it was given up.
    """
    with transaction.atomic():
        # Whoever asks at the same time waits here, and then sees the row that we make.
        _lock(environment)
        rows = environment.verifications
        if rows.filter(status__in=[TrialStatus.QUEUED, TrialStatus.RUNNING]).exists():
            return True
        if not renew and rows.filter(status=TrialStatus.ERRORED).count() >= MAX_ERRORED:
            return False
        verification = open_verification(environment, depth=depth, renew=renew)
        dispatch.send(dispatch.VERIFY, verification.pk)
    return True


def open_verification(
    environment: Environment,
    status: TrialStatus = TrialStatus.QUEUED,
    depth: Depth = Depth.QUICK,
    renew: str = "",
) -> Verification:
    """A new verification row, the highest number; the environment is then verifying.

    It is of the parts that the environment has now; a verdict that there is stands meanwhile.
    `renew` names the gate that is to be asked anew, or is ALL_GATES; see `Verification.renewed`.
    """
    with transaction.atomic():
        _lock(environment)
        number = environment.verifications.aggregate(n=Max("number"))["n"] or 0
        verification = Verification.objects.create(
            environment=environment,
            number=number + 1,
            status=status,
            protocol=PROTOCOL_VERSION,
            depth=depth,
            renewed=renew,
            parts_digest=environment.parts_digest,
        )
        if environment.verification in (VerificationStatus.PENDING, VerificationStatus.ERRORED):
            transitions.move(environment, "verification", VerificationStatus.VERIFYING)
    return verification


def _lock(environment: Environment) -> None:
    """Hold the environment's row to the transaction's end, and see it as it is now."""
    locked = Environment.objects.select_for_update()
    environment.refresh_from_db(fields=["verification", "parts_digest"], from_queryset=locked)


def record_gate(verification: Verification, position: int, result: GateResult) -> None:
    """Keep a gate's answer as soon as it is there; the same gate again replaces it."""
    GateRecord.objects.update_or_create(
        verification=verification,
        gate=result.gate,
        defaults={
            "position": position,
            "version": result.version,
            "status": result.status,
            "reason": result.reason,
            "is_blocking": result.is_blocking,
            "evidence": msgspec.to_builtins(result.evidence),
            "figures": dict(result.figures),
            "seconds": result.seconds,
            "cache_key": result.cache_key,
            "source_id": int(result.source) if result.source else None,
        },
    )


def recall_gate(verification: Verification, gate: str, cache_key: str) -> GateResult | None:
    """A lasting answer to this question, given here or earlier, unless it is to be asked anew.

    What this verification has answered itself counts in any case: it goes on where it was.
    """
    rows = (
        GateRecord.objects.filter(gate=gate, cache_key=cache_key)
        .exclude(status=GateStatus.INCONCLUSIVE)
        .order_by("-pk")
    )
    row = rows.filter(verification=verification).first()
    if row is None and verification.renewed not in (gate, ALL_GATES):
        row = rows.filter(source=None).exclude(verification=verification).first()
    if row is None:
        return None
    source = row.source_id or row.verification_id
    return GateResult(
        gate=row.gate,
        version=row.version,
        status=GateStatus(row.status),
        reason=row.reason,
        evidence=tuple(msgspec.convert(row.evidence, list[Evidence])),
        figures=tuple(row.figures.items()),
        is_blocking=row.is_blocking,
        cache_key=row.cache_key,
        source="" if source == verification.pk else str(source),
    )


def answered_by(verification: Verification, gate: str) -> Verification:
    """The verification that asked this gate, and has its trials: this one, or an earlier one."""
    row = verification.gates.filter(gate=gate).select_related("source").first()
    return verification if row is None or row.source is None else row.source


def record_verdict(verification: Verification, verdict: Verdict) -> None:
    """Close a verification and move its environment. Raises TransitionRefused for a zombie."""
    environment = verification.environment
    is_machinery = verdict.status is GateStatus.INCONCLUSIVE
    totals = verification.trials.aggregate(sandboxes=Sum("sandboxes"), n=Count("id"))
    with transaction.atomic():
        for position, gate in enumerate(verdict.gates):
            record_gate(verification, position, gate)
        transitions.move(
            verification,
            "status",
            TrialStatus.ERRORED if is_machinery else TrialStatus.COMPLETED,
            sources=[TrialStatus.RUNNING],
            where={"attempt": verification.attempt},
            set_fields={
                "verdict": verdict.status,
                "backend": _backends(verification),
                "sandboxes": totals["sandboxes"] or 0,
                "seconds": sum(gate.seconds for gate in verdict.gates),
                "finished_at": timezone.now(),
                "lease_expires_at": None,
            },
            reason=summarize(verdict),
        )
        settle_environment(environment, verification, verdict)


def _backends(verification: Verification) -> str:
    """What ran the trials that count, joined; those of earlier answers, where none was run."""
    counted = verification.trials.exclude(outcome__in=MACHINERY)
    names = [*_names(counted)] or [*_names(verification.trials.all())]
    sources = verification.gates.exclude(source=None).values_list("source__backend", flat=True)
    for source in sources.distinct():
        names += source.split(", ")
    return ", ".join(sorted({*names} - {""}))[:40]


def _names(trials: QuerySet[Trial]) -> Iterable[str]:
    return trials.values_list("backend", flat=True).distinct()


def settle_environment(
    environment: Environment, verification: Verification, verdict: Verdict
) -> None:
    """Give the environment the verdict of its newest verification, and its scores."""
    environment.refresh_from_db()
    target = _STATUS_OF_VERDICT[verdict.status]
    fields: dict[str, object] = {
        "failure": "" if verdict.is_valid else summarize(verdict)[:500],
        "current_verification": verification,
        **_bites(verdict),
    }
    if environment.verification == target or (
        target == VerificationStatus.ERRORED
        and environment.verification in (VerificationStatus.VALID, VerificationStatus.INVALID)
    ):
        # Machinery that broke says nothing against an earlier verdict.
        if target != VerificationStatus.ERRORED:
            Environment.objects.filter(pk=environment.pk).update(**fields)
    else:
        if environment.review == ReviewStatus.APPROVED and target != VerificationStatus.VALID:
            transitions.move(
                environment,
                "review",
                ReviewStatus.UNREVIEWED,
                reason="no longer valid after re-verification",
            )
        transitions.move(
            environment,
            "verification",
            target,
            set_fields=fields,
            reason=summarize(verdict),
        )
    store_scores(environment, verification)


def summarize(verdict: Verdict) -> str:
    """The verdict in one line."""
    if verdict.is_valid:
        return f"{len(verdict.gates)} gates answered, all blocking ones passed"
    for gate in verdict.gates:
        if gate.is_blocking and gate.status is verdict.status:
            return f"{gate.gate}: {gate.reason}"
    return str(verdict.status)


def _bites(verdict: Verdict) -> dict[str, object]:
    for gate in verdict.gates:
        if gate.gate == "demands" and gate.status is not GateStatus.NOT_APPLICABLE:
            return {"demands_bite": int(dict(gate.figures).get("bite", 0))}
    return {}
