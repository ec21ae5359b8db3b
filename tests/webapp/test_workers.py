"""Runs on real workers, one of which is killed in the middle of its work."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Count

from evolution.reading import FoundBundle, find_bundles
from sandbox.contracts import Outcome
from webapp.lifecycle import RunStatus, TrialStatus, VerificationStatus
from webapp.models import Environment, EvolutionStep, Trial, Verification
from webapp.services import environments, runs

pytestmark = [pytest.mark.workers, pytest.mark.bubblewrap, pytest.mark.slow]

SEEDS = Path(__file__).resolve().parents[2] / "seeds"


def _import(slug: str) -> Environment:
    (found,) = find_bundles(SEEDS / slug)
    assert isinstance(found, FoundBundle)
    environment, _ = environments.import_seed(found.bundle, name=found.name, origin="tests")
    return environment


def _wait(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def test_a_worker_killed_in_the_middle_loses_nothing(workers: Any) -> None:
    seed = _import("service-config-migration")
    run = runs.create_run(lineages=[seed.lineage], seed=5, generations=2, children=1)
    candidate_trials = Trial.objects.filter(verification__environment__parent__isnull=False)
    _wait(lambda: candidate_trials.count() >= 5, 120, "a child is being verified")
    killed_at = candidate_trials.count()
    os.kill(workers.pids()["worker1"], signal.SIGKILL)

    def is_over() -> bool:
        run.refresh_from_db()
        return run.status != RunStatus.RUNNING

    _wait(is_over, 240, "the run ends after a worker was killed")
    assert run.status == RunStatus.COMPLETED
    steps = EvolutionStep.objects.filter(run=run)
    assert [step.status for step in steps] == [RunStatus.COMPLETED] * 2
    assert max(step.attempt for step in steps) == 2, "the killed work was taken up again"
    assert killed_at < candidate_trials.count()
    repeated = (
        Trial.objects.exclude(outcome__in=[Outcome.INFRA_ERROR, Outcome.CANCELLED])
        .values("verification", "solver", "repetition")
        .annotate(n=Count("pk"))
        .filter(n__gt=1)
    )
    assert not repeated.exists()
    assert not Verification.objects.exclude(status=TrialStatus.COMPLETED).exists()
    assert not Environment.objects.filter(verification=VerificationStatus.VERIFYING).exists()
    first = steps.get(generation=1)
    assert first.child is not None
    assert first.child.verifications.count() == 1, "the verification was resumed, not begun anew"
