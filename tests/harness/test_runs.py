"""Whole runs on real workers, with models over real HTTP: disturbed, stopped, resumed, replayed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from django.db.models import Sum

from evolution.directions import Direction
from evolution.llm.budget import Limits
from sandbox.trial import Runner
from tests.conftest import worker_environment
from tests.evolution.real_sandbox import orders, subject_of
from tests.harness.lineages import KEY, QUICK, House, endpoint
from tests.harness.server import Fault, FaultPlan, ModelServer
from tests.harness.server.models import all_models
from webapp.embedded.supervisor import Supervisor, worker_parts
from webapp.lifecycle import PauseReason, RunStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, ModelCall
from webapp.models.call import FINAL, TO_MODELS
from webapp.services import environments, runs

pytestmark = [pytest.mark.workers, pytest.mark.bubblewrap, pytest.mark.slow]

RUN_SEED = 5
GENERATIONS = 2
KINDS = tuple(kind for kind in Fault if kind not in (Fault.WRONG_MODEL, Fault.HANG, Fault.SLOW))
PLENTY = Limits(tokens=10_000_000)
DIRECTIONS = (Direction.LENGTH, Direction.SKILL)
STANDARD = replace(QUICK, oracle_runs=3, nop_runs=3, mutant_count=20, directions=DIRECTIONS)
"""How deep the workers look, with the directions of these runs."""


@contextmanager
def workers_on(server: ModelServer, model: str, folder: Path) -> Iterator[Supervisor]:
    """Two workers, a tender and beat whose models are on this server."""
    environment = worker_environment()
    environment["RATCHET_MODELS"] = endpoint(server.url, model, "attempts=8 timeout=20")
    environment["HARNESS_KEY"] = KEY
    with (
        (folder / "workers.log").open("a", buffering=1) as log,
        Supervisor(
            worker_parts(2), write=lambda line: log.write(f"{line}\n"), environment=environment
        ) as supervisor,
    ):
        yield supervisor


def start(budget: Limits = PLENTY, replay_of: EvolutionRun | None = None) -> EvolutionRun:
    """A run over the small environment."""
    bundle = orders()
    environment, _ = environments.import_seed(bundle, name="orders", origin="tests")
    return runs.create_run(
        lineages=[environment.lineage],
        seed=RUN_SEED,
        generations=GENERATIONS,
        children=1,
        directions=DIRECTIONS,
        author=runs.LLM,
        budget=Limits() if replay_of else budget,
        replay_of=replay_of,
    )


def finished(run: EvolutionRun, status: str, seconds: float = 300) -> EvolutionRun:
    """The run as soon as it has this status."""
    end = time.monotonic() + seconds
    while True:
        run.refresh_from_db()
        if run.status == status:
            return run
        seen = list(run.steps.values_list("status", "error", "refusals"))
        assert run.status in (RunStatus.RUNNING, RunStatus.QUEUED), (run.status, run.error, seen)
        assert time.monotonic() < end, f"not {status} in {seconds} s: {seen}"
        time.sleep(0.1)


def digests(run: EvolutionRun) -> list[str]:
    """The accepted children, generation by generation."""
    steps = EvolutionStep.objects.filter(run=run, child__isnull=False).order_by("generation")
    return list(steps.values_list("child__digest", flat=True))


def test_a_run_disturbed_in_every_way_gives_what_an_undisturbed_one_gives(
    transactional_db: None, tmp_path: Path, runner: Runner
) -> None:
    plan = FaultPlan(share=0.2, kinds=KINDS)
    with ModelServer(all_models(), faults=plan) as quiet:
        house = House(runner, endpoint(quiet.url, "competent", "attempts=8"))
        bred = house.breed(subject_of(orders()), GENERATIONS, RUN_SEED, STANDARD)
        expected = [step.accepted.mutation.child.digest for step in bred if step.accepted]
        assert expected, [step.refusals for step in bred]
    with (
        ModelServer(all_models(), faults=plan) as server,
        workers_on(server, "competent", tmp_path) as supervisor,
    ):

        def kill(number: int) -> None:
            if number in (4, 13):
                for name in ("worker1", "worker2"):
                    with suppress(ProcessLookupError, KeyError):
                        os.kill(supervisor.pids()[name], signal.SIGKILL)

        server.at_call = kill
        run = finished(start(), RunStatus.COMPLETED)
        assert digests(run) == expected
        assert any(call.fault is not None for call in server.served)
        assert max(run.steps.values_list("attempt", flat=True)) > 1, "work was taken up again"
        nothing_is_done_twice(run, server)
        no_key_is_kept(tmp_path)
        count = len(server.served)
        assert digests(finished(start(replay_of=run), RunStatus.COMPLETED)) == expected
        assert len(server.served) == count, "a replay asks no model"


def test_the_hard_stop_rests_the_run_and_more_budget_goes_on_from_there(
    transactional_db: None, tmp_path: Path
) -> None:
    budget = Limits(tokens=25_000)
    with (
        ModelServer(all_models()) as server,
        workers_on(server, "competent", tmp_path),
    ):
        run = finished(start(budget), RunStatus.PAUSED)
        assert run.pause_reason == PauseReason.BUDGET
        assert "token" in run.error
        largest = max(call.usage["total_tokens"] for call in server.served if call.usage)
        assert spent(run) <= 25_000 + largest, "exceeded by the calls in flight at most"
        assert spent(run) == server.told()
        assert not Environment.objects.filter(verification="verifying").exists()
        runs.resume_run(run, None, PLENTY)
        run = finished(run, RunStatus.COMPLETED)
        assert len(digests(run)) == GENERATIONS
        nothing_is_done_twice(run, server)
        assert spent(run) == server.told()


def spent(run: EvolutionRun) -> int:
    """All tokens on record."""
    total = ModelCall.objects.filter(TO_MODELS, run=run).aggregate(
        a=Sum("input_tokens"), b=Sum("output_tokens")
    )
    return (total["a"] or 0) + (total["b"] or 0)


def nothing_is_done_twice(run: EvolutionRun, server: ModelServer) -> None:
    """Every answered question was answered once, but for answers that a killed worker lost."""
    rows = ModelCall.objects.filter(TO_MODELS, run=run, outcome__in=FINAL)
    keys = list(rows.values_list("key", flat=True))
    assert len(keys) == len(set(keys))
    told = [call for call in server.served if call.fault is None or not call.fault.is_passing]
    lost = len(told) - len(keys)
    assert 0 <= lost <= 4, "at most one for each killed worker"


def no_key_is_kept(folder: Path) -> None:
    """The key is in no row and no log."""
    assert KEY not in (folder / "workers.log").read_text()
    for call in ModelCall.objects.all():
        assert KEY not in f"{call.text}{call.reason}{call.model}"
