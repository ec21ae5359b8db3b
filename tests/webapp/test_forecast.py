"""What a run of models will take, from recorded steps or a guess."""

from __future__ import annotations

import pytest

from evolution.llm.budget import Limits
from evolution.llm.calls import Role, Usage
from evolution.llm.endpoints import ModelConfigError, parse_models
from evolution.llm.pricing import parse_prices
from tests.webapp.conversations import make_call, tell_story
from tests.webapp.rows import make_child, make_run, make_seed, make_step
from webapp.lifecycle import RunStatus
from webapp.model_forecast import ASSUMED, forecast
from webapp.models import EvolutionRun, EvolutionStep, ModelCall
from webapp.selectors.spend import Recorded, recorded_steps
from webapp.services.calls import Place, store_call

TABLE = parse_models("default=http://127.0.0.1:9/v1 m")
PRICES = parse_prices("m=1/10")
TOOK = {Role.PROPOSER: Usage(2_000_000, 100_000)}


def of(steps: int, recorded: Recorded) -> tuple[float, float, float]:
    """Expected tokens, and their range."""
    found = forecast(steps, table=TABLE, prices=PRICES, recorded=recorded, has_usd=True)
    tokens = found.figures[1]
    return tokens.value, tokens.low, tokens.high


def test_without_a_record_it_is_a_guess_and_says_so() -> None:
    found = forecast(2, table=TABLE, prices=PRICES, recorded=Recorded(), has_usd=False)
    each = sum(usage.tokens for usage in ASSUMED.values())
    assert found.figures[1].value == 2 * each
    assert (found.low, found.high) == (pytest.approx(1 / 3), 3)
    assert "assumed" in found.ground


def test_recorded_steps_are_scaled_and_their_spread_makes_the_range() -> None:
    recorded = Recorded(10, TOOK, calls=200, seconds=500.0, variation=0.5)
    found = forecast(20, table=TABLE, prices=PRICES, recorded=recorded, has_usd=True)
    calls, tokens, usd, seconds = found.figures
    assert (calls.value, tokens.value, seconds.value) == (400, 4_200_000, 1_000)
    assert usd.value == pytest.approx(4 * 1 + 0.2 * 10)
    assert tokens.low < tokens.value < tokens.high
    assert tokens.high - tokens.value == pytest.approx(tokens.value - tokens.low)
    assert "from 10 recorded steps, ranges that hold nine times of ten" in found.ground


def test_more_steps_and_a_longer_record_narrow_the_range() -> None:
    def width(steps: int, basis: int) -> float:
        value, low, high = of(steps, Recorded(basis, TOOK, variation=0.8))
        return (high - low) / value

    assert width(1, 10) > width(100, 10) > width(100, 100)
    assert width(1, 4) == pytest.approx(3 - 1 / 3), "four steps tell no spread"


def test_a_budget_in_usd_needs_every_price() -> None:
    unpriced = parse_prices("")
    with pytest.raises(ModelConfigError, match="needs a price"):
        forecast(1, table=TABLE, prices=unpriced, recorded=Recorded(), has_usd=True)
    found = forecast(1, table=TABLE, prices=unpriced, recorded=Recorded(), has_usd=False)
    assert "whose price is not known" in found.lacking


def test_a_budget_that_falls_short_is_told() -> None:
    found = forecast(10, table=TABLE, prices=PRICES, recorded=Recorded(5, TOOK), has_usd=False)
    assert found.shortfall(Limits(tokens=2_100_000)).startswith(
        "the budget lasts for about 5 of 10"
    )
    assert found.shortfall(Limits(tokens=5_000_000)) == ""


@pytest.mark.django_db
def test_the_record_is_of_steps_of_models_that_ended() -> None:
    assert recorded_steps() == Recorded()
    child = make_child(make_seed())
    step = child.step
    assert step is not None
    tell_story(step.run, step, child)
    assert recorded_steps().steps == 0, "nothing of it has ended"
    EvolutionRun.objects.update(author="llm")
    EvolutionStep.objects.filter(pk=step.pk).update(status=RunStatus.COMPLETED)
    found = recorded_steps()
    assert (found.steps, found.calls, found.variation) == (1, 6, 0.0)
    assert found.seconds == pytest.approx(72.5)
    assert sum(u.tokens for u in found.by_role.values()) == sum(
        call.tokens for call in ModelCall.objects.all()
    )
    seed = make_seed("another")
    other = make_step(make_run(seed), seed)
    store_call(Place(run=other.run, step=other), make_call(usage=Usage(10, 1)))
    EvolutionRun.objects.update(author="llm")
    EvolutionStep.objects.filter(pk=other.pk).update(status=RunStatus.COMPLETED)
    assert recorded_steps().variation > 0.9
