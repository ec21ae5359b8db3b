"""What a gate answered once is not asked again, unless somebody wants it to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evolution.contracts import GateStatus
from evolution.ports import TrialRunner
from sandbox.contracts import Image, ImageSpec, Outcome, SolverEnd
from tests.evolution.toy_world import ToyRunner, toy_bundle
from webapp.adapters import work
from webapp.adapters.journal import DatabaseGateMemory
from webapp.lifecycle import TrialStatus, VerificationStatus
from webapp.models import Environment, GateRecord, Verification
from webapp.models.trial import ALL_GATES
from webapp.services import environments, verifications

pytestmark = pytest.mark.django_db

NEED_TRIALS = {
    *("oracle", "nop", "contract", "headroom", "demand", "demands", "parent_solution", "mutants"),
    "sequence",
}


@pytest.fixture
def seed() -> Environment:
    environment, _ = environments.import_seed(toy_bundle(), name="toy", origin="tests")
    return environment


def verified(seed: Environment, runner: TrialRunner, renew: str = "") -> Verification:
    seed.refresh_from_db()
    verification = verifications.open_verification(seed, renew=renew)
    assert work.work_on_verification(verification.pk, lambda _party: runner, "tests")
    verification.refresh_from_db()
    return verification


def reused(verification: Verification) -> set[str]:
    return {record.gate for record in verification.gates.all() if record.is_reused}


def test_a_second_verification_asks_nothing_and_says_where_its_answers_are_from(
    seed: Environment,
) -> None:
    first = verified(seed, ToyRunner())
    runner = ToyRunner()
    second = verified(seed, runner)
    assert runner.trials == []
    assert (first.verdict, second.verdict) == (GateStatus.PASSED, GateStatus.PASSED)
    assert reused(second) == NEED_TRIALS
    assert reused(first) == set()
    for record in second.gates.filter(gate__in=NEED_TRIALS):
        before = first.gates.get(gate=record.gate)
        assert record.source == first
        assert record.evidence == before.evidence
        assert (record.reason, record.figures) == (before.reason, before.figures)
        assert record.seconds == 0
    third = verified(seed, ToyRunner())
    assert {r.source_id for r in third.gates.all() if r.is_reused} == {first.pk}
    assert second.backend == third.backend == first.backend == "toy"
    assert (second.sandboxes, second.seconds) == (0, 0)
    seed.refresh_from_db()
    assert (seed.verification, seed.current_verification) == (VerificationStatus.VALID, third)


def test_one_gate_is_asked_anew_and_all_others_are_reused(seed: Environment) -> None:
    verified(seed, ToyRunner())
    runner = ToyRunner()
    again = verified(seed, runner, renew="nop")
    asked = NEED_TRIALS - reused(again)
    assert asked & {r.gate for r in again.gates.all()} == {"nop"}
    assert [spec.solver.name for spec in runner.trials] == ["state", *["nop"] * 3]
    assert verifications.answered_by(again, "nop") == again
    assert verifications.answered_by(again, "oracle") != again


def test_all_gates_are_asked_anew_when_that_is_wanted(seed: Environment) -> None:
    first = verified(seed, ToyRunner())
    fresh = verified(seed, ToyRunner(), renew=ALL_GATES)
    assert reused(fresh) == set()
    assert fresh.sandboxes == first.sandboxes > 0
    assert {r.source for r in verified(seed, ToyRunner()).gates.all() if r.is_reused} == {fresh}


def test_what_was_inconclusive_is_asked_again_and_the_rest_is_not(seed: Environment) -> None:
    broken = verified(seed, ToyRunner({"nop": 99}))
    assert broken.verdict == GateStatus.INCONCLUSIVE
    assert broken.status == TrialStatus.ERRORED
    runner = ToyRunner()
    whole = verified(seed, runner)
    assert whole.verdict == GateStatus.PASSED
    assert reused(whole) == {"oracle"}
    assert whole.gates.get(gate="oracle").source == broken


@pytest.mark.parametrize(("end", "is_kept"), [(SolverEnd.TIMEOUT, False), (SolverEnd.DONE, True)])
def test_a_failure_by_a_time_out_is_asked_again_and_any_other_is_not(
    seed: Environment, end: SolverEnd, is_kept: bool
) -> None:
    late = verified(seed, ToyRunner(verdicts={"oracle": Outcome.FAIL}, ends={"oracle": end}))
    assert late.gates.get(gate="oracle").status == GateStatus.FAILED
    again = verified(seed, ToyRunner())
    assert again.verdict == (GateStatus.FAILED if is_kept else GateStatus.PASSED)
    assert ("oracle" in reused(again)) is is_kept


def test_a_gate_in_another_version_or_on_another_image_is_asked_again(seed: Environment) -> None:
    class Rebuilt(ToyRunner):
        def prepare(self, spec: ImageSpec) -> Image:
            return replace(super().prepare(spec), ref="built again")

    first = verified(seed, ToyRunner())
    assert reused(verified(seed, Rebuilt())) == set()
    keys = set(first.gates.exclude(cache_key="").values_list("cache_key", flat=True))
    assert len(keys) == len(NEED_TRIALS)
    GateRecord.objects.filter(gate="oracle").update(cache_key="of an earlier version")
    assert reused(verified(seed, ToyRunner())) == NEED_TRIALS - {"oracle"}


def test_a_verification_that_goes_on_keeps_what_it_has_answered_whatever_is_renewed(
    seed: Environment,
) -> None:
    first = verified(seed, ToyRunner())
    fresh = verifications.open_verification(seed, TrialStatus.RUNNING, renew=ALL_GATES)
    answer = first.gates.get(gate="oracle")
    assert DatabaseGateMemory(fresh).recall("oracle", answer.cache_key) is None
    GateRecord.objects.create(
        verification=fresh, position=0, gate="oracle", version=1, status=GateStatus.PASSED,
        reason="answered before the worker died", cache_key=answer.cache_key,
    )  # fmt: skip
    kept = DatabaseGateMemory(fresh).recall("oracle", answer.cache_key)
    assert kept is not None
    assert (kept.reason, kept.source) == ("answered before the worker died", "")
