"""Difficulty scores: demands and D_T from verifications, pass rates from solvers' trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from evolution.difficulty import policy_free
from evolution.difficulty.posterior import pass_rate
from evolution.gates.desk import MACHINERY
from evolution.sequence import Pair
from webapp.models import (
    DifficultyScore,
    Environment,
    Measure,
    MeasuredTrial,
    Verification,
)
from webapp.services.trials import unpack_result
from webapp.store import load_bundle


def store_scores(environment: Environment, verification: Verification) -> None:
    """Store demands and D_T of an environment, from the traced oracle run of a verification."""
    _store(environment, Measure.DEMANDS, float(environment.demands_live))
    row = (
        verification.trials.filter(solver__startswith="oracle")
        .exclude(outcome__in=MACHINERY)
        .order_by("repetition")
        .first()
    )
    trace = unpack_result(bytes(row.record)).trace if row is not None else None
    if trace is None or trace.is_blind:
        return
    sequence = tuple(msgspec.convert(environment.sequence, list[Pair]))
    found = policy_free.measure(sequence, trace, load_bundle(environment).folder("solution"))
    basis = f"reference {policy_free.reference_digest()[:8]}"
    _store(environment, Measure.LENGTH, float(found.length), basis)
    _store(environment, Measure.SCENARIO_RARITY, found.scenario_rarity, basis)
    _store(environment, Measure.SKILL_RARITY, found.skill_rarity, basis)
    _store(environment, Measure.D_T, found.total, basis)
    Environment.objects.filter(pk=environment.pk).update(d_t=found.total)


def refresh_measured(environments: Iterable[Environment]) -> None:
    """Recompute the measured pass rate, per solver, of these environments."""
    for environment in environments:
        outcomes: dict[int, list[bool]] = defaultdict(list)
        rows = MeasuredTrial.objects.filter(environment=environment, counts=True)
        for solver_id, is_passed in rows.values_list("solver_id", "is_passed"):
            outcomes[solver_id].append(is_passed)
        for solver_id, passed in outcomes.items():
            estimate = pass_rate(sum(passed), len(passed))
            DifficultyScore.objects.update_or_create(
                environment=environment,
                measure=Measure.PASS_RATE,
                solver_id=solver_id,
                defaults={
                    "value": estimate.mean,
                    "low": estimate.low,
                    "high": estimate.high,
                    "n": len(passed),
                    "basis": f"{sum(passed)} of {len(passed)} passed",
                },
            )


def _store(environment: Environment, measure: Measure, value: float, basis: str = "") -> None:
    DifficultyScore.objects.update_or_create(
        environment=environment,
        measure=measure,
        solver=None,
        defaults={"value": value, "basis": basis},
    )
