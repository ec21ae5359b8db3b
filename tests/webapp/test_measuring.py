"""manage.py measure: a model at a terminal, judged like any solver; and runs of models by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from evolution.llm.budget import Limits
from evolution.llm.calls import Role
from evolution.llm.replay import CallMemory
from tests.evolution.real_sandbox import REPORT, orders
from tests.harness.server import Ask, ModelServer, Reply, ToolCall
from tests.webapp.rows import make_seed
from webapp import model_wiring
from webapp.models import Environment, EvolutionRun, MeasuredTrial, ModelCall, SolverKind
from webapp.services import attempts, environments

pytestmark = pytest.mark.django_db(transaction=True)
WORK = f"mkdir -p /app/out; cat > /tmp/report.py <<'END'\n{REPORT}\nEND\npython3 /tmp/report.py"


def works(ask: Ask) -> Reply:
    """Does the work in one command, then says so."""
    return (
        Reply(text="It is done.")
        if ask.results
        else Reply(calls=(ToolCall.of("run", command=WORK),))
    )


def idles(ask: Ask) -> Reply:
    """Says that it is done."""
    return Reply(text="It is done.")


@pytest.fixture
def server(settings: Any) -> Iterator[ModelServer]:
    with ModelServer({"works": works, "idles": idles}) as server:
        settings.RATCHET_MODELS = f"default={server.url} works backoff=0 attempts=2"
        settings.RATCHET_PRICES = "works=1/4; idles=1/4"
        yield server


@pytest.fixture
def seed() -> Environment:
    return environments.import_seed(orders(), name="tests/orders", origin="tests")[0]


def measure(seed: Environment, *options: str) -> dict[str, object]:
    out = StringIO()
    arguments = ("measure", str(seed.pk), "--json", "--sandbox", "bubblewrap", *options)
    call_command(*arguments, stdout=out, stderr=StringIO())
    found: dict[str, object] = json.loads(out.getvalue())["environments"][0]
    return found


@pytest.mark.bubblewrap
def test_attempts_are_judged_counted_and_kept_with_their_trajectory(
    server: ModelServer, seed: Environment, settings: Any, admin_client: Client
) -> None:
    found = measure(seed, "--attempts", "2", "--budget-usd", "1")
    assert (found["passed"], found["n"], found["not_counted"]) == (2, 2, 0)
    rows = MeasuredTrial.objects.order_by("number")
    assert [row.number for row in rows] == [1, 2]
    assert all(row.reward == 1.0 and row.usd and row.output_tokens for row in rows)
    row = rows[0]
    page = admin_client.get(f"/measured/{row.pk}/").text
    assert "calls run" in page
    assert "It is done." in page
    cast = admin_client.get(f"/measured/{row.pk}/cast/").content
    assert json.loads(cast.splitlines()[0])["version"] in (2, 3)
    settings.RATCHET_MODELS = f"solver={server.url} idles"
    lazy = measure(seed, "--attempts", "1", "--budget-tokens", "100000")
    assert (lazy["passed"], lazy["n"]) == (0, 1)
    assert MeasuredTrial.objects.values("solver").distinct().count() == 2


@pytest.mark.bubblewrap
def test_a_budget_that_is_used_up_counts_nothing_and_repeats_nothing(
    server: ModelServer, seed: Environment
) -> None:
    with pytest.raises(CommandError, match=r"budget is used up.*goes on from there"):
        measure(seed, "--attempts", "1", "--budget-tokens", "20")
    assert MeasuredTrial.objects.count() == 0
    assert measure(seed, "--attempts", "1", "--budget-usd", "1")["n"] == 1
    answered = ModelCall.objects.filter(outcome="answered").exclude(model="sandbox").count()
    assert answered == len(server.served) == 2


def test_an_attempt_that_was_broken_off_goes_on_before_a_new_one() -> None:
    solver = attempts.find_solver("tiny", SolverKind.LLM)
    assert attempts.open_numbers(solver, "orders", 2) == [1, 2]
    for number in (1, 3):
        made = attempts.Attempt(is_passed=True, counts=True, source="a test")
        attempts.record_attempt(solver, None, "orders", number, made)
    assert attempts.open_numbers(solver, "orders", 3) == [2, 4, 5]
    assert attempts.next_number(solver, "orders") == 4


def test_what_cannot_be_measured_is_one_line(
    seed: Environment, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for models, options, said in (
        ("", ["--budget-usd", "1"], "RATCHET_MODELS"),
        ("solver=openai:gpt-5.1", [], "needs a budget"),
        ("solver=openai:gpt-5.1", ["--budget-usd", "1"], "OPENAI_API_KEY"),
        ("solver=http://127.0.0.1:9/v1 m", ["--budget-usd", "1"], "RATCHET_PRICES"),
        ("modifier=http://127.0.0.1:9/v1 m", ["--budget-tokens", "9"], "no model plays solver"),
    ):
        settings.RATCHET_MODELS = models
        with pytest.raises(CommandError, match=said) as error:
            measure(seed, *options)
        assert "\n" not in str(error.value)


def test_a_run_of_models_says_what_is_missing_before_it_starts(settings: Any) -> None:
    make_seed()
    for models, options, said in (
        ("", ["--budget-usd", "1"], "RATCHET_MODELS"),
        ("default=http://127.0.0.1:9/v1 m", [], "needs a budget"),
        ("default=http://127.0.0.1:9/v1 m", ["--budget-usd", "1"], "RATCHET_PRICES"),
        ("solver=http://127.0.0.1:9/v1 m", ["--budget-tokens", "9"], "no model plays proposer"),
    ):
        settings.RATCHET_MODELS = models
        with pytest.raises(CommandError, match=said):
            call_command("evolve", "--author", "llm", *options, stderr=StringIO())
    assert not EvolutionRun.objects.exists()


def test_a_forecast_is_told_before_the_start(settings: Any) -> None:
    make_seed()
    # The solver plays no part in a run, and its price need not be known.
    settings.RATCHET_MODELS = "default=http://127.0.0.1:9/v1 m; solver=http://127.0.0.1:9/v1 n"
    settings.RATCHET_PRICES = "m=1/4"
    out, errors = StringIO(), StringIO()
    options = ("--author", "llm", "--budget-usd", "0.1", "--generations", "1", "--children", "1")
    call_command("evolve", *options, "--step-tokens", "5000", "--queue", stdout=out, stderr=errors)
    first, second = errors.getvalue().splitlines()
    assert first == (
        "forecast: at most 1 steps, 30 (10 to 90) calls, 618,300 (206,100 to 1,854,900) tokens,"
        " 0.71 (0.24 to 2.14) USD, 300 (100 to 900) seconds of models"
        " (assumed: no step is recorded)"
    )
    assert "the budget lasts for about 0 of 1 steps" in second
    run = EvolutionRun.objects.get()
    assert run.budget_usd == 0.1
    with model_wiring.gateway(CallMemory(), run) as models:
        assert models.model_for(Role.PROPOSER).model_name == "m"
        assert models.budget.step == Limits(tokens=5000)
