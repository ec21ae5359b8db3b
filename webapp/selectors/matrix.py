"""The matrix of an environment: every gate that exists, with its answer, beside another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F

from evolution.contracts import GateStatus
from evolution.gates.desk import MACHINERY
from evolution.gates.policy import TABLE, Depth, asked
from evolution.gates.versions import PROTOCOL_VERSION, version_of
from webapp.lifecycle import TrialStatus
from webapp.models import Environment, GateRecord, Trial, Verification
from webapp.selectors.detail import light_trials

_ORDER = (GateStatus.FAILED, GateStatus.INCONCLUSIVE, GateStatus.PASSED)


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate's answer with its trials, and its evidence as plain rows."""

    record: GateRecord
    evidence: tuple[dict[str, Any], ...]
    trials: tuple[Trial, ...]

    @property
    def asked_in(self) -> Verification:
        """The verification whose trials the answer rests on."""
        return self.record.source or self.record.verification

    @property
    def is_stale(self) -> bool:
        """Whether the gate, or how trials are made at all, has another version by now."""
        is_old = self.record.version != version_of(self.record.gate)
        return is_old or self.asked_in.protocol != str(PROTOCOL_VERSION)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One gate. Without `view` it gave no answer, for the reason in `why_not`.

    `beside` is the other matrix's answer; `change` is better or worse, empty for none.
    """

    gate: str
    view: GateView | None
    why_not: str = ""
    beside: GateRecord | None = None
    change: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a matrix is compared with. `label` says it in a word or two."""

    verification: Verification
    label: str


def list_verifications(environment: Environment) -> list[Verification]:
    """All runs of the gates, newest first."""
    return list(Verification.objects.filter(environment=environment).order_by("-number"))


def choose_verification(
    environment: Environment, rows: Sequence[Verification], number: str
) -> Verification | None:
    """The one asked for by number, else the one that the verdict rests on, else the newest."""
    for row in rows:
        if number and str(row.number) == number:
            return row
    for row in rows:
        if row.pk == environment.current_verification_id:
            return row
    return rows[0] if rows else None


def choose_beside(
    environment: Environment,
    rows: Sequence[Verification],
    shown: Verification | None,
    wanted: str,
) -> Beside | None:
    """What to compare with: "parent" (as a rule), a verification's number, or "nothing"."""
    if shown is None or wanted == "nothing":
        return None
    for row in rows:
        if str(row.number) == wanted and row.pk != shown.pk:
            return Beside(row, f"verification {row.number}")
    if environment.parent_id is None:
        return None
    current = Verification.objects.filter(
        environment=environment.parent_id, pk=F("environment__current_verification")
    ).first()
    return Beside(current, "parent") if current else None


def gate_views(verification: Verification | None) -> tuple[GateView, ...]:
    """The gates of a verification in order, each with evidence (linked to trials) and trials."""
    if verification is None:
        return ()
    records = list(verification.gates.select_related("source"))
    trials = _trials(verification, records)
    by_gate: dict[tuple[int, str], list[Trial]] = {}
    for trial in trials:
        by_gate.setdefault((trial.verification_id, trial.gate), []).append(trial)
    return tuple(
        GateView(
            record,
            _with_trials(record.evidence, trials),
            tuple(by_gate.get((record.source_id or verification.pk, record.gate), ())),
        )
        for record in records
    )


def _with_trials(evidence: Sequence[Any], trials: Sequence[Trial]) -> tuple[dict[str, Any], ...]:
    """Each observation with its trial: those of one key are repetitions, in their order."""
    by_key: dict[str, list[Trial]] = {}
    for trial in trials:
        by_key.setdefault(trial.key, []).append(trial)
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for row in evidence:
        if isinstance(row, dict):
            key = str(row.get("key", ""))
            at = seen[key] = seen.get(key, -1) + 1
            known = by_key.get(key, [])
            rows.append({**row, "trial": known[min(at, len(known) - 1)] if known else None})
    return tuple(rows)


def _trials(verification: Verification, records: Sequence[GateRecord]) -> list[Trial]:
    """The trials of a verification, and of those from which its answers were taken.

    They go by repetition, and what the machinery spoiled comes last.
    """
    sources = {record.source_id for record in records if record.source_id}
    rows = light_trials().filter(verification__in=[verification.pk, *sources])
    return sorted(
        rows.order_by("id"), key=lambda trial: (trial.outcome in MACHINERY, trial.repetition)
    )


def matrix_of(
    environment: Environment, verification: Verification, beside: Beside | None = None
) -> tuple[MatrixRow, ...]:
    """All gates in their order: answered, under way, or never asked and why."""
    views = {view.record.gate: view for view in gate_views(verification)}
    others = {r.gate: r for r in beside.verification.gates.all()} if beside else {}
    names = [*TABLE, *(name for name in views if name not in TABLE)]
    return tuple(
        MatrixRow(
            gate=name,
            view=(view := views.get(name)),
            why_not="" if view else _why_not(environment, verification, name),
            beside=(other := others.get(name)),
            change=_change(view.record, other) if view and other else "",
        )
        for name in names
    )


def _why_not(environment: Environment, verification: Verification, gate: str) -> str:
    """Why a gate gave no answer."""
    if gate not in asked(environment.policy, Depth(verification.depth)):
        return "asked in the full protocol only"
    if verification.status in (TrialStatus.QUEUED, TrialStatus.RUNNING):
        return "not answered yet"
    return "not asked: an earlier gate ended it"


def _change(here: GateRecord, there: GateRecord) -> str:
    """Better or worse; empty where both say the same, or where one was no question at all."""
    mine, other = GateStatus(here.status), GateStatus(there.status)
    if mine == other or GateStatus.NOT_APPLICABLE in (mine, other):
        return ""
    return "better" if _ORDER.index(mine) > _ORDER.index(other) else "worse"


@dataclass(frozen=True, slots=True)
class Answered:
    """How far an open verification is: gates that have answered, of those that are asked."""

    count: int
    of: int


def answered_of(environment: Environment, verification: Verification) -> Answered | None:
    """How far it is; None when it has ended."""
    if verification.status not in (TrialStatus.QUEUED, TrialStatus.RUNNING):
        return None
    of = asked(environment.policy, Depth(verification.depth))
    return Answered(verification.gates.count(), len(of))


def matrix_as_json(verification: Verification) -> dict[str, Any]:
    """A verification with all its evidence, as machines read it."""
    environment = verification.environment
    views = gate_views(verification)
    return {
        "environment": environment.pk,
        "name": environment.name,
        "digest": environment.digest,
        "verification": verification.number,
        "status": verification.status,
        "verdict": verification.verdict,
        "protocol": verification.protocol,
        "depth": verification.depth,
        "backend": verification.backend,
        "sandboxes": verification.sandboxes,
        "seconds": round(verification.seconds, 3),
        "gates": {view.record.gate: _gate_as_json(view) for view in views},
    }


def _gate_as_json(view: GateView) -> dict[str, Any]:
    record = view.record
    return {
        "status": record.status,
        "reason": record.reason,
        "is_blocking": record.is_blocking,
        "version": record.version,
        "is_stale": view.is_stale,
        "is_reused": record.source_id is not None,
        "seconds": round(record.seconds, 3),
        "figures": record.figures,
        "evidence": [
            {**row, "trial": row["trial"].pk if row["trial"] else None} for row in view.evidence
        ],
    }
