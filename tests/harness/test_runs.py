"""A whole run on real workers, models over real HTTP: stopped, disturbed, killed, replayed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from django.utils import timezone

from evolution.directions import Direction
from evolution.llm.budget import Limits
from sandbox.trial import Runner
from tests.conftest import worker_environment
from tests.evolution.real_sandbox import orders, subject_of
from tests.harness.campaign import (
    WORKERS,
    Killer,
    digests,
    finished,
    known,
    lost_answers,
    no_key_is_kept,
    spent,
    workers_on,
)
from tests.harness.lineages import QUICK, House, endpoint
from tests.harness.server import FaultPlan, ModelServer
from tests.harness.server.faults import BRISK
from tests.harness.server.models import all_models
from webapp.lifecycle import PauseReason, RunStatus
from webapp.models import Environment, EvolutionRun, Verification
from webapp.services import environments, runs

pytestmark = [pytest.mark.workers, pytest.mark.bubblewrap, pytest.mark.slow]

RUN_SEED = 5
DIRECTIONS = (Direction.LENGTH, Direction.SKILL)
BUDGET = 45_000
"""Tokens: the child takes more."""
PLENTY = Limits(tokens=10_000_000)
KILLS = 2
"""In the middle of the first call after the stop, and while the gates look at the child."""


def start(budget: Limits = PLENTY, replay_of: EvolutionRun | None = None) -> EvolutionRun:
    """A run over the small environment."""
    environment, _ = environments.import_seed(orders(), name="orders", origin="tests")
    return runs.create_run(
        lineages=[environment.lineage],
        seed=RUN_SEED,
        generations=1,
        children=1,
        directions=DIRECTIONS,
        author=runs.LLM,
        budget=Limits() if replay_of else budget,
        replay_of=replay_of,
    )


def bred(runner: Runner, plan: FaultPlan) -> list[str]:
    """What an undisturbed step gives, made in this process."""
    with ModelServer(all_models(), faults=plan) as quiet:
        house = House(runner, endpoint(quiet.url, "competent", "attempts=8"))
        config = replace(QUICK, directions=DIRECTIONS)
        return house.breed(subject_of(orders()), 1, RUN_SEED, config)


def test_a_run_stopped_and_disturbed_in_every_way_gives_what_an_undisturbed_one_gives(
    transactional_db: None, tmp_path: Path, runner: Runner
) -> None:
    plan, log = FaultPlan(share=0.2, kinds=BRISK), tmp_path / "workers.log"
    expected = bred(runner, plan)
    assert len(expected) == 1
    with (
        ModelServer(all_models(), faults=plan) as server,
        workers_on(server, "competent", log, worker_environment()) as supervisor,
    ):
        run = finished(start(Limits(tokens=BUDGET)), RunStatus.PAUSED)
        _is_stopped(run, server)
        # By what is under way, never by the clock: how many calls there are, and how long they
        # take, is another matter with every prompt and every machine.
        server.at_call = killer = Killer(supervisor, {len(server.served) + 1: 0.0})
        runs.resume_run(run, None, PLENTY)
        run = finished(run, RunStatus.COMPLETED, tick=partial(_kill_at_the_gates, killer))
        assert digests(run) == expected
        assert killer.deaths == KILLS
        assert killer.hits > KILLS, "a step in its call, then a step and its gates"
        assert max(run.steps.values_list("attempt", flat=True)) > 2, "killed work was taken up"
        assert 0 <= lost_answers(run, server) <= KILLS * len(WORKERS), "each at most one"
        assert any(call.fault is not None for call in server.served)
        no_key_is_kept([log])
        count = len(server.served)
        assert digests(finished(start(replay_of=run), RunStatus.COMPLETED)) == expected
        assert len(server.served) == count, "a replay asks no model"


def _kill_at_the_gates(killer: Killer, run: EvolutionRun) -> None:
    """The second kill, as soon as a living worker is at the gates."""
    alive = run.steps.filter(status=RunStatus.RUNNING, lease_expires_at__gt=timezone.now())
    gates = Verification.objects.filter(status=RunStatus.RUNNING, environment__step__in=alive)
    if killer.deaths == KILLS - 1 and gates.exists():
        killer.kill()


def _is_stopped(run: EvolutionRun, server: ModelServer) -> None:
    """The hard stop: exceeded by the call in flight at most, and nothing is left half done."""
    assert run.pause_reason == PauseReason.BUDGET
    assert "token" in run.error
    largest = max(call.usage["total_tokens"] for call in server.served if call.usage)
    assert spent(run) <= BUDGET + largest
    assert known(run) == server.told(), "what the endpoint told is counted to the token"
    assert lost_answers(run, server) == 0
    assert not Environment.objects.filter(verification="verifying").exists()
