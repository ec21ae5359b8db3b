"""Does a model answer? One small request, made once, outside of every run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evolution.llm.calls import (
    BudgetStop,
    CallFailed,
    CallOutcome,
    ModelSpec,
    ModelUnavailable,
    Role,
    Usage,
)
from evolution.llm.endpoints import ModelConfigError, ModelTable
from evolution.llm.lines import Lines
from evolution.llm.pricing import Prices
from evolution.llm.replay import CallMemory

PROBE_SECONDS = 30.0
PROBE_TOKENS = 512
"""Enough for models that think before they say a word."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of asking a model. `reason` is one line, empty when it answered."""

    outcome: CallOutcome
    reason: str
    usage: Usage
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether the model can be used."""
        return self.outcome in {CallOutcome.ANSWERED, CallOutcome.EMPTY, CallOutcome.REFUSED}


def probe_model(spec: ModelSpec, lines: Lines, prices: Prices) -> Probe:
    """Ask a model for one word; it never raises for what the endpoint does or for a missing key."""
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import AgentRunError

    from evolution.llm.gateway import Gateway

    options = {
        **dict(spec.settings),
        "attempts": 1,
        "timeout": PROBE_SECONDS,
        "max_tokens": PROBE_TOKENS,
    }
    small = ModelSpec(spec.provider, spec.name, spec.base_url, tuple(sorted(options.items())))
    log = CallMemory()
    started = time.monotonic()
    with Gateway(ModelTable(((Role.JUDGE, small),)), log, lines, prices=prices) as gateway:
        try:
            agent: Agent[None, str] = Agent(gateway.model_for(Role.JUDGE), retries=0)
            with gateway.at("probe"):
                gateway.run(agent, "Answer with the one word: ready")
        except ModelConfigError as error:
            return Probe(CallOutcome.AUTH, str(error), Usage(), 0.0)
        except (ModelUnavailable, CallFailed, BudgetStop, AgentRunError):
            pass  # the record says it better
    last = log.calls[-1]
    return Probe(last.outcome, last.reason, log.spent(), time.monotonic() - started)
