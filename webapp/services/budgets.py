"""What a run may spend on models, and how much of it is gone."""

from __future__ import annotations

from dataclasses import asdict

from django.db.models import Q

from evolution.llm.budget import Limits
from webapp.models import EvolutionRun
from webapp.selectors.spend import seconds_at_work
from webapp.services import calls
from webapp.services.errors import InvalidInput

UNLIMITED = Limits()
CAP = 1e8


def budget_of(run: EvolutionRun) -> Limits:
    """The limits that a run carries."""
    return Limits(run.budget_usd, run.budget_tokens, run.budget_seconds)


def step_budget_of(run: EvolutionRun) -> Limits:
    """What each step of a run may take for itself."""
    return Limits(run.step_usd, run.step_tokens, run.step_seconds)


def check_budget(budget: Limits, prefix: str = "budget") -> None:
    """Raises InvalidInput for a budget without any limit, or with one that is no sum to spend.

    The error names the form's field, which begins with `prefix`.
    """
    if budget.is_open:
        raise InvalidInput(
            "a run with models needs a budget: name one in US dollars, tokens or seconds"
            " (--budget-usd, --budget-tokens, --budget-seconds)",
            "budget_usd",
        )
    for name, value in asdict(budget).items():
        cap = CAP if name != "tokens" else calls.TOKEN_CAP
        if value is not None and not 0 < value <= cap:  # NaN is refused, too
            raise InvalidInput(
                f"a budget in {name} is a number above 0, at most {cap:.0g}", f"{prefix}_{name}"
            )


def budget_line(budget: Limits) -> str:
    """A budget in words; "none" when nothing is limited."""
    return f"budget: {limits_line(budget) or 'none'}"


def limits_line(budget: Limits) -> str:
    """The limits in words; empty when nothing is limited."""
    parts = []
    if budget.usd is not None:
        parts.append(f"{budget.usd:,.2f} USD")
    if budget.tokens is not None:
        parts.append(f"{budget.tokens:,} tokens")
    if budget.seconds is not None:
        parts.append(f"{budget.seconds:,.0f} seconds")
    return ", ".join(parts)


def used_up(run: EvolutionRun, budget: Limits) -> str:
    """Which limit leaves no room, in words; empty when each does."""
    spent = calls.sum_usage(Q(run=run))
    if budget.usd is not None and spent.usd >= budget.usd:
        return f"{spent.usd:,.4f} of {budget.usd:,.4f} USD"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens:,} of {budget.tokens:,} tokens"
    if budget.seconds is not None and (seconds := seconds_at_work(run)) >= budget.seconds:
        return f"{seconds:,.0f} of {budget.seconds:,.0f} seconds"
    return ""
