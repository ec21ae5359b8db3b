"""Verdicts for the tests of the pages: gates with evidence, trials, scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
from django.utils import timezone

from evolution.contracts import Evidence, GateStatus
from sandbox.contracts import CheckResult, Outcome, Trace, TrialResult, Usage
from webapp.lifecycle import TrialStatus, VerificationStatus
from webapp.models import DifficultyScore, Environment, GateRecord, Measure, Trial, Verification
from webapp.services.trials import pack_result

GATES = (
    *("format", "build", "oracle", "nop", "demand", "demands", "parent_solution", "mutants"),
    "headroom",
)


def trial_result(
    is_passed: bool, checks: Sequence[str], text: str = "", *, is_traced: bool = False
) -> TrialResult:
    """What a trial left behind."""
    trace = Trace(
        read=(text or "/app/data/access.log",),
        written=("/app/out/report.csv", "/app/out/skipped.txt"),
        deleted=("/app/data/access.log.1",),
        programs=("bash", "python3"),
    )
    return TrialResult(
        outcome=Outcome.PASS if is_passed else Outcome.FAIL,
        rewards=(("reward", 1.0 if is_passed else 0.0),),
        solver_exit_status=0,
        checks=tuple(
            CheckResult(
                name,
                "passed" if is_passed or i else "failed",
                "" if is_passed or i else "row 3: expected 10.0.1.7, found nothing",
            )
            for i, name in enumerate(checks)
        ),
        phases=(
            *(("prepare", 0.002), ("start", 0.031), ("solver", 0.141 if is_traced else 0.118)),
            ("collect", 0.012),
            *(("verifier", 0.064), ("stop", 0.009)),
        ),
        usage=Usage(23_400_000, cpu_seconds=0.14, peak_processes=4, disk_bytes=48_128),
        solver_output=text.encode() or b"\x1b[32mdone\x1b[0m: 80 lines read\n",
        verifier_output=b"check_report ... ok\n",
        backend="bubblewrap",
        image_digest="a" * 64,
        trace=trace if is_traced else None,
        notes=("cpus = 0.5 is enforced as 1 whole",),
        sandboxes=2,
        seconds=0.234,
    )


def add_verification(environment: Environment, *, text: str = "") -> Verification:
    """A finished verification with gates, evidence and trials that fit the verdict."""
    is_valid = environment.verification == VerificationStatus.VALID
    number = environment.verifications.count() + 1
    verification = Verification.objects.create(
        environment=environment,
        number=number,
        status=TrialStatus.COMPLETED,
        verdict=GateStatus.PASSED if is_valid else GateStatus.FAILED,
        protocol="p1",
        backend="bubblewrap",
        sandboxes=41,
        seconds=6.3,
        finished_at=timezone.now(),
    )
    checks = ["check_report", *(c for d in environment.demands for c in d["checks"])]
    trials = [_trial(verification, "demand", 1, trial_result(False, checks, text))]
    for number in (1, 2, 3):
        oracle = trial_result(True, checks, text, is_traced=number == 1)
        trials.append(_trial(verification, "oracle", number, oracle))
        trials.append(_trial(verification, "nop", number, trial_result(False, checks, text)))
    Trial.objects.bulk_create(trials)
    GateRecord.objects.bulk_create(_gates(environment, trials, text))
    environment.current_verification = verification
    environment.save(update_fields=["current_verification"])
    return verification


_REASONS = {
    "format": "9 files, 6.2 kB, all links stay inside",
    "oracle": "3 of 3 runs earned full reward; flaky at most 63 % with 95 % confidence",
    "nop": "3 of 3 runs failed, as they must",
    "demand": "only naive on the child fails, on the new checks alone",
    "demands": "every demand bites when its adaptation is left out",
    "mutants": "19 of 20 mutants are killed, lower bound 0.83",
    "headroom": "peak memory 23 MB of 512 MB, 0.2 s of 120 s",
}


_FIGURES: dict[str, dict[str, float]] = {
    "oracle": {"runs": 3, "passed": 3, "failures": 0, "flaky_at_most": 0.6316},
    "nop": {"runs": 3},
    "mutants": {"judged": 20, "noticed": 19, "score_at_least": 0.8285, "silent_checks": 0},
}


def _gates(environment: Environment, trials: Sequence[Trial], text: str) -> list[GateRecord]:
    is_valid = environment.verification == VerificationStatus.VALID
    answered = GATES if is_valid else GATES[: GATES.index("mutants") + 1]
    return [
        GateRecord(
            verification=trials[0].verification,
            position=position,
            gate=gate,
            version=1,
            status=_gate_status(gate, environment),
            reason=text or _REASONS.get(gate, "as it should be"),
            evidence=_evidence([t.key for t in trials if t.gate == gate][:2], gate, text),
            figures=_FIGURES.get(gate, {}),
            seconds=0.02 + 0.3 * position,
        )
        for position, gate in enumerate(answered)
    ]


def _gate_status(gate: str, environment: Environment) -> str:
    if gate == "mutants" and environment.verification == VerificationStatus.INVALID:
        return GateStatus.FAILED
    if environment.is_seed and gate in ("demand", "demands", "parent_solution"):
        return GateStatus.NOT_APPLICABLE
    return GateStatus.PASSED


def _evidence(keys: Sequence[str], gate: str, text: str) -> list[dict[str, object]]:
    rows = [
        Evidence(
            label=text or f"{gate}, run {index + 1}",
            result="reward 1, every check passed",
            command="bash /solution/solve.sh",
            exit_status=0,
            last_lines=text or "80 lines read\nreport.csv written\n",
            files=("/app/out/report.csv",),
            key=key,
        )
        for index, key in enumerate(keys)
    ]
    return list(msgspec.to_builtins(rows))


def _trial(verification: Verification, gate: str, repetition: int, result: TrialResult) -> Trial:
    solver = "naive on the child" if gate == "demand" else gate
    key = hashlib.sha256(f"{verification.pk}{solver}".encode()).hexdigest()
    return Trial(
        verification=verification,
        gate=gate,
        solver=solver,
        repetition=repetition,
        key=key,
        status=TrialStatus.COMPLETED,
        outcome=result.outcome,
        reward=result.reward,
        solver_end=result.solver_end,
        seconds=result.seconds,
        sandboxes=result.sandboxes,
        backend=result.backend,
        solver_seconds=dict(result.phases)["solver"],
        cpu_seconds=result.usage.cpu_seconds,
        peak_memory_bytes=result.usage.peak_memory_bytes,
        is_traced=result.trace is not None,
        record=pack_result(result),
    )


def add_scores(environment: Environment) -> None:
    """D_T with its parts."""
    values = {
        Measure.LENGTH: float(len(environment.sequence)),
        Measure.SCENARIO_RARITY: 2.31,
        Measure.SKILL_RARITY: 3.07,
        Measure.D_T: environment.d_t or 9.0,
    }
    DifficultyScore.objects.bulk_create(
        DifficultyScore(
            environment=environment, measure=measure, value=value, basis="reference 1f0c9a2e"
        )
        for measure, value in values.items()
    )
