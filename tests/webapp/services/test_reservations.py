"""Calls in flight count against a run's budget, in whichever process they are under way."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from evolution.llm.budget import Budget, Limits
from evolution.llm.calls import BudgetStop, Usage
from tests.conftest import ROOT, worker_environment
from tests.harness.lineages import KEY, endpoint
from tests.harness.server import ModelServer
from tests.harness.server.models.parts import answer
from tests.webapp.conversations import make_call
from tests.webapp.rows import make_run, make_seed, make_step
from webapp.adapters.calls import DatabaseCallLog
from webapp.models import CallReservation, EvolutionStep, ModelCall
from webapp.services.calls import Place

TEN = Usage(6, 4, 0, 0.01)


@pytest.fixture
def step(db: None) -> EvolutionStep:
    """A step of a run."""
    seed = make_seed()
    return make_step(make_run(seed), seed)


def room_for(tokens: int) -> Budget:
    """A run's budget, as one process sees it."""
    return Budget(Limits(tokens=tokens))


def test_what_another_process_has_in_flight_takes_room_until_it_is_on_record(
    step: EvolutionStep,
) -> None:
    place = Place(run=step.run, step=step)
    one, two = DatabaseCallLog(place), DatabaseCallLog(place)
    reserved = one.reserve(TEN, 60, lambda spent: room_for(19).reserve(spent, TEN))
    with pytest.raises(BudgetStop, match="10 of 19 tokens"):
        two.reserve(TEN, 60, lambda spent: room_for(19).reserve(spent, TEN))
    one.record(make_call(usage=Usage(5, 4)), reserved)
    assert not CallReservation.objects.exists()
    assert two.reserve(TEN, 60, lambda spent: room_for(19).reserve(spent, TEN)) is not None


def test_what_is_refused_leaves_nothing_set_aside(step: EvolutionStep) -> None:
    log = DatabaseCallLog(Place(run=step.run, step=step))
    with pytest.raises(BudgetStop):
        log.reserve(TEN, 60, lambda spent: room_for(9).reserve(spent, TEN))
    assert not CallReservation.objects.exists()


def test_a_killed_workers_calls_count_until_their_time_is_up_or_the_step_is_taken_up(
    step: EvolutionStep,
) -> None:
    place = Place(run=step.run, step=step)
    log, seen = DatabaseCallLog(place), list[int]()
    log.reserve(TEN, 60, lambda spent: None)
    log.reserve(TEN, -1, lambda spent: seen.append(spent.tokens))
    log.reserve(TEN, 60, lambda spent: seen.append(spent.tokens))
    assert seen == [10, 10]
    longest = CallReservation.objects.order_by("-expires_at")[0].expires_at
    assert longest - timezone.now() < timedelta(seconds=61)
    with DatabaseCallLog(place) as again:
        again.reserve(TEN, 60, lambda spent: seen.append(spent.tokens))
    assert seen[-1] == 0


@pytest.mark.django_db(transaction=True)
def test_whoever_looks_at_the_budget_waits_for_whoever_looks_at_it_now() -> None:
    seed = make_seed()
    place = Place(run=(run := make_run(seed)), step=make_step(run, seed))
    is_looking, may_go_on = threading.Event(), threading.Event()
    seen: list[int] = []

    def slow(_: Usage) -> None:
        is_looking.set()
        assert may_go_on.wait(30)

    def reserve(fits: Callable[[Usage], None]) -> None:
        with closing(connection):
            DatabaseCallLog(place).reserve(TEN, 60, fits)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(reserve, slow)
        assert is_looking.wait(30)
        second = pool.submit(reserve, lambda spent: seen.append(spent.tokens))
        with pytest.raises(TimeoutError):
            second.result(0.5)
        assert not seen
        may_go_on.set()
        first.result(30)
        second.result(30)
    assert seen == [10], "what was set aside meanwhile counts"


WORKER = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
import django
django.setup()
from django.db import connection
from evolution.agents.answers import Review
from evolution.agents.asking import Question, ask
from evolution.agents.trimming import Bounds
from evolution.llm.budget import Budget, Limits
from evolution.llm.calls import BudgetStop, Role
from evolution.llm.endpoints import parse_models
from evolution.llm.gateway import Gateway
from evolution.llm.lines import Lines
from evolution.prompts import prompt
from webapp.adapters.calls import DatabaseCallLog
from webapp.models import EvolutionStep
from webapp.services.calls import Place

step = EvolutionStep.objects.select_related("run").get(pk=int(sys.argv[1]))
lines = Lines(os.environ)

def one(number):
    question = Question(
        Role.PLAN_REVIEWER, f"{sys.argv[2]}/{number}", prompt("plan_reviewer"), "plan", Review
    )
    try:
        ask(models, question, Bounds())
        return True
    except BudgetStop:
        return False

print("ready", flush=True)
sys.stdin.readline()
with (
    DatabaseCallLog(Place(run=step.run, step=step)) as log,
    Gateway(
        parse_models(os.environ["RATCHET_MODELS"]), log, lines,
        budget=Budget(Limits(tokens=step.run.budget_tokens)),
    ) as models,
    ThreadPoolExecutor(4) as pool,
):
    print(sum(pool.map(one, range(8))))
lines.close()
connection.close()
"""


@pytest.mark.slow
def test_two_processes_never_take_the_same_room(transactional_db: None) -> None:
    seed = make_seed()
    run = make_run(seed)
    steps = [make_step(run, seed, ordinal) for ordinal in range(2)]
    findings = ["as long an answer as is expected " * 15] * 8
    script = {"formal": lambda asked: answer(asked, accepted=False, findings=findings)}
    with ModelServer(script, latency=0.05) as server:
        environment = worker_environment() | {
            "RATCHET_MODELS": endpoint(server.url, "formal", "concurrency=8"),
            "HARNESS_KEY": KEY,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
        }
        run.budget_tokens = 6_000
        run.save(update_fields=["budget_tokens"])
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, str(step.pk), f"worker{step.ordinal}"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for step in steps
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:  # at one moment
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        told = [worker.communicate(timeout=300)[0] for worker in workers]
        made = [int(line) for line in told]
        assert all(worker.returncode == 0 for worker in workers)
        assert sum(made) == len(server.served)
        assert 0 < sum(made) < 16, "the budget ended it"
    spent = ModelCall.objects.filter(run=run).aggregate(
        tokens=Sum("input_tokens") + Sum("output_tokens")
    )["tokens"]
    assert spent == server.told()
    assert spent <= 6_000, "no call was let through beside another one's room"
    assert not CallReservation.objects.exists()
