"""A gateway to a scripted endpoint, with everything it needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic_ai import Agent

from evolution.llm.budget import Budget
from evolution.llm.calls import CallLog, Role
from evolution.llm.endpoints import COMPATIBLE, ModelTable, parse_models
from evolution.llm.gateway import Gateway
from evolution.llm.lines import Lines
from evolution.llm.pricing import Prices, parse_prices
from evolution.llm.replay import CallMemory
from tests.evolution.llm.endpoint import Script

KEY = "sk-canary-5f3a9c17"
PRICES = "tiny=1/10"


@dataclass
class Way:
    """A gateway at work."""

    gateway: Gateway
    log: CallMemory
    lines: Lines

    def ask(self, prompt: str = "hello", place: str = "here", role: Role = Role.PROPOSER) -> str:
        """One conversation of one turn."""
        agent: Agent[None, str] = Agent(self.gateway.model_for(role))
        with self.gateway.at(place):
            return self.gateway.run(agent, prompt).output


@contextmanager
def way_to(
    script: Script | str,
    options: str = "",
    *,
    log: CallMemory | None = None,
    budget: Budget | None = None,
    prices: Prices | None = None,
    is_replay: bool = False,
    name: str = "tiny",
    provider: str = COMPATIBLE,
) -> Iterator[Way]:
    """A gateway whose every role is played by the scripted endpoint."""
    url = script if isinstance(script, str) else script.url
    options = " ".join(f"attempts=3 backoff=0 timeout=6 key_env=TINY_KEY {options}".split())
    chosen = dict(word.split("=") for word in options.split())
    text = " ".join(f"{key}={value}" for key, value in chosen.items())
    table = parse_models(f"default={url} {name} {text}")
    if provider != COMPATIBLE:
        # The hosted ones are where they are; only a test puts them elsewhere.
        table = ModelTable(
            tuple((role, replace(spec, provider=provider)) for role, spec in table.entries)
        )
    lines = Lines({"TINY_KEY": KEY})
    kept = CallMemory() if log is None else log
    known: CallLog = kept
    try:
        with Gateway(
            table,
            known,
            lines,
            budget=budget,
            prices=prices or parse_prices(PRICES),
            is_replay=is_replay,
        ) as gateway:
            yield Way(gateway, kept, lines)
    finally:
        lines.close()
