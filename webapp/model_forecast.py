"""What a run of models will take, told before it starts: from recorded steps, or a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evolution.llm.budget import Limits
from evolution.llm.calls import Role, Usage
from evolution.llm.endpoints import ModelConfigError, ModelTable
from evolution.llm.pricing import Prices, refuse_unpriced

ASSUMED = {
    Role.PROPOSER: Usage(12_000, 1_500),
    Role.PLAN_REVIEWER: Usage(10_000, 800),
    Role.MODIFIER: Usage(400_000, 20_000),
    Role.EXPLOITER: Usage(150_000, 8_000),
    Role.JUDGE: Usage(15_000, 1_000),
}
"""What one step is assumed to take until steps were recorded; an agent reads its files again and
again, so that its input grows with the square of its turns."""

STEP_ROLES = (*ASSUMED, Role.COLD_START)
"""Who is asked in a step; the last one where an environment states no sequence."""


def of_steps(table: ModelTable) -> ModelTable:
    """The models that a run asks: what others cost, or lack, is nothing to it."""
    return ModelTable(tuple(entry for entry in table.entries if entry[0] in STEP_ROLES))


@dataclass(frozen=True, slots=True)
class Forecast:
    """What `steps` steps are expected to take; `basis` counts the recorded steps, 0 for a guess."""

    steps: int
    basis: int
    usage: Usage
    unpriced: tuple[str, ...]

    def lines(self, budget: Limits) -> list[str]:
        """For a person, one fact a line."""
        known = (
            f"from {self.basis} recorded steps" if self.basis else "assumed: no step is recorded"
        )
        cost = f"about {self.usage.usd:,.2f} USD"
        if self.unpriced:
            cost += f" without {', '.join(self.unpriced)}, whose price is not known"
        said = [
            f"forecast: at most {self.steps} steps, about {self.usage.tokens:,} tokens,"
            f" {cost} ({known})"
        ]
        share = self.share_of(budget)
        if share is not None and share < 1:
            said.append(
                f"forecast: the budget lasts for about {share * self.steps:.0f} of them;"
                " then the run rests, and goes on with a larger one"
            )
        return said

    def share_of(self, budget: Limits) -> float | None:
        """How much of the run the budget is expected to last for; None where nothing tells."""
        shares = []
        if budget.usd is not None and self.usage.usd > 0:
            shares.append(budget.usd / self.usage.usd)
        if budget.tokens is not None and self.usage.tokens > 0:
            shares.append(budget.tokens / self.usage.tokens)
        return min(shares) if shares else None


def forecast(
    steps: int,
    budget: Limits,
    *,
    table: ModelTable,
    prices: Prices,
    recorded: Mapping[Role, Usage],
    basis: int,
) -> Forecast:
    """The forecast of a run. `recorded` is what `basis` steps took together, role by role.

    Raises ModelConfigError when a role of the loop has no model, or when US dollars are limited
    and a model's price is not known.
    """
    missing = [role.value for role in ASSUMED if role not in dict(table.entries)]
    if missing:
        raise ModelConfigError(
            f"no model plays {', '.join(missing)}: name one in RATCHET_MODELS, or default=…"
        )
    specs = {role: table.spec(role) for role in ASSUMED}
    if budget.usd is not None:
        refuse_unpriced(prices, of_steps(table).specs)
    total = Usage()
    for role, spec in specs.items():
        took = recorded.get(role, Usage()) if basis else ASSUMED[role]
        scale = steps / basis if basis else steps
        usage = Usage(
            round(took.input_tokens * scale),
            round(took.output_tokens * scale),
            round(took.cached_tokens * scale),
        )
        total += prices.priced(spec, usage)
    return Forecast(steps, basis, total, prices.unpriced(dict.fromkeys(specs.values())))
