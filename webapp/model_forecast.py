"""What a run of models will take, told before it starts: from recorded steps, or a guess.

Loads no client of any provider, so that the web process may ask, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.conf import settings

from evolution.llm.budget import Limits
from evolution.llm.calls import Role, Usage
from evolution.llm.endpoints import ModelConfigError, ModelTable, parse_models
from evolution.llm.pricing import Prices, parse_prices, refuse_unpriced
from webapp.models import ErrandKind
from webapp.selectors.spend import Recorded, recorded_steps

ASSUMED = {
    Role.PROPOSER: Usage(12_000, 1_500),
    Role.PLAN_REVIEWER: Usage(10_000, 800),
    Role.MODIFIER: Usage(400_000, 20_000),
    Role.EXPLOITER: Usage(150_000, 8_000),
    Role.JUDGE: Usage(15_000, 1_000),
}
"""What one step is assumed to take until steps were recorded; an agent reads its files again and
again, so that its input grows with the square of its turns."""

ASSUMED_CALLS, ASSUMED_SECONDS = 30, 300.0
"""Calls of such a step, and how long its models are waited for."""

ASSUMED_FACTOR = 3.0
"""A guess may be wrong by so much, either way."""

TRUSTED_STEPS = 5
"""From so many recorded steps on, how they differ tells how far the forecast may be off."""

STEP_ROLES = (*ASSUMED, Role.COLD_START)
"""Who is asked in a step; the last one where an environment states no sequence."""

ERRAND_ROLES = {ErrandKind.SOLVE: Role.COLD_START, ErrandKind.TRIAGE: Role.TRIAGE}
"""Who is asked for an errand."""

NINE_TENTHS = 1.645
"""Standard deviations either side that hold nine tenths of what happens."""


def model_table() -> ModelTable:
    """Which model plays which role. Raises ModelConfigError, also when none plays any."""
    table = parse_models(settings.RATCHET_MODELS)
    if not table.entries:
        raise ModelConfigError(
            "no model is configured: set RATCHET_MODELS, for example default=openai:NAME"
        )
    return table


def prices() -> Prices:
    """What tokens cost: the operator's prices, then the published ones. Raises ModelConfigError."""
    return parse_prices(settings.RATCHET_PRICES)


def check_errand(kind: ErrandKind, budget: Limits) -> None:
    """Raises ModelConfigError when no model plays its role, or when USD buy what nobody prices."""
    spec = model_table().spec(ERRAND_ROLES[kind])
    if budget.usd is not None:
        refuse_unpriced(prices(), [spec])


def of_steps(table: ModelTable) -> ModelTable:
    """The models that a run asks: what others cost, or lack, is nothing to it."""
    return ModelTable(tuple(entry for entry in table.entries if entry[0] in STEP_ROLES))


@dataclass(frozen=True, slots=True)
class Figure:
    """One forecast figure with the range that it is expected in, nine times of ten."""

    unit: str
    value: float
    low: float
    high: float
    digits: int = 0

    def __str__(self) -> str:
        numbers = (self.value, self.low, self.high)
        value, low, high = (f"{number:,.{self.digits}f}" for number in numbers)
        return f"{value} ({low} to {high}) {self.unit}"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What `steps` steps are expected to take; `basis` counts the recorded steps, 0 for a guess.

    `low` and `high` are factors on every figure; `seconds` are those that models are waited for.
    """

    steps: int
    basis: int
    calls: float
    usage: Usage
    seconds: float
    low: float
    high: float
    unpriced: tuple[str, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Calls, tokens, US dollars, seconds."""
        return (
            self._figure("calls", self.calls),
            self._figure("tokens", self.usage.tokens),
            self._figure("USD", self.usage.usd, 2),
            self._figure("seconds of models", self.seconds),
        )

    def _figure(self, unit: str, value: float, digits: int = 0) -> Figure:
        return Figure(unit, value, value * self.low, value * self.high, digits)

    def lines(self, budget: Limits) -> list[str]:
        """For a person, one fact a line."""
        figures = ", ".join(map(str, self.figures))
        said = [f"at most {self.steps} steps, {figures} ({self.ground})"]
        return [f"forecast: {line}" for line in (*said, *self.hints(budget))]

    def hints(self, budget: Limits) -> list[str]:
        """What is to be known beside the figures: whose cost they lack, how far a budget goes."""
        return [line for line in (self.lacking, self.shortfall(budget)) if line]

    @property
    def lacking(self) -> str:
        """Whose cost is not in the US dollars; empty when all prices are known."""
        names = ", ".join(self.unpriced)
        return f"the USD are without {names}, whose price is not known" if names else ""

    def shortfall(self, budget: Limits) -> str:
        """How far a budget goes that is not expected to last; empty for one that is."""
        share = self.share_of(budget)
        if share is None or share >= 1:
            return ""
        return (
            f"the budget lasts for about {share * self.steps:.0f} of {self.steps} steps;"
            " then the run rests, and goes on with a larger one"
        )

    @property
    def ground(self) -> str:
        """What the forecast rests on, and how far its ranges go."""
        if not self.basis:
            return "assumed: no step is recorded"
        known = f"from {self.basis} recorded step{'s' if self.basis > 1 else ''}"
        if self.basis < TRUSTED_STEPS:
            return f"{known}, too few to tell the range"
        return f"{known}, ranges that hold nine times of ten"

    def share_of(self, budget: Limits) -> float | None:
        """How much of the run the budget is expected to last for; None where nothing tells."""
        shares = []
        if budget.usd is not None and self.usage.usd > 0:
            shares.append(budget.usd / self.usage.usd)
        if budget.tokens is not None and self.usage.tokens > 0:
            shares.append(budget.tokens / self.usage.tokens)
        return min(shares) if shares else None


def forecast_run(steps: int, budget: Limits, step_budget: Limits) -> Forecast:
    """The forecast of a run, from what is configured and recorded.

    Raises ModelConfigError when a role of the loop has no model, or when US dollars are limited
    and a model's price is not known.
    """
    has_usd = budget.usd is not None or step_budget.usd is not None
    return forecast(
        steps, table=model_table(), prices=prices(), recorded=recorded_steps(), has_usd=has_usd
    )


def forecast(
    steps: int, *, table: ModelTable, prices: Prices, recorded: Recorded, has_usd: bool
) -> Forecast:
    """See `forecast_run`; `has_usd` says whether US dollars are limited."""
    missing = [role.value for role in ASSUMED if role not in dict(table.entries)]
    if missing:
        raise ModelConfigError(
            f"no model plays {', '.join(missing)}: name one in RATCHET_MODELS, or default=…"
        )
    if has_usd:
        refuse_unpriced(prices, of_steps(table).specs)
    basis = recorded.steps
    scale = steps / basis if basis else float(steps)
    known = recorded.by_role if basis else ASSUMED
    specs = {role: spec for role, spec in of_steps(table).entries if role in known}
    total = Usage()
    for role, spec in specs.items():
        took = known[role]
        usage = Usage(
            round(took.input_tokens * scale),
            round(took.output_tokens * scale),
            round(took.cached_tokens * scale),
        )
        total += prices.priced(spec, usage)
    low, high = _range(steps, recorded)
    return Forecast(
        steps=steps,
        basis=basis,
        calls=(recorded.calls if basis else ASSUMED_CALLS) * scale,
        usage=total,
        seconds=(recorded.seconds if basis else ASSUMED_SECONDS) * scale,
        low=low,
        high=high,
        unpriced=prices.unpriced(dict.fromkeys(specs.values())),
    )


def _range(steps: int, recorded: Recorded) -> tuple[float, float]:
    """Between which factors of the expected figures a run of so many steps will end."""
    if recorded.steps < TRUSTED_STEPS or steps < 1:
        return 1 / ASSUMED_FACTOR, ASSUMED_FACTOR
    # The steps of this run differ among themselves, and the mean that is on record may be off.
    off = NINE_TENTHS * recorded.variation * math.sqrt(1 / steps + 1 / recorded.steps)
    return max(0.0, 1 - off), 1 + off
