"""What tokens cost: the operator's own prices first, then the list that genai-prices carries."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from evolution.llm.calls import ModelSpec, Usage
from evolution.llm.endpoints import ModelConfigError, model_label

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. `cached_usd` is for input tokens that were read before."""

    input_usd: float
    output_usd: float
    cached_usd: float

    def of(self, usage: Usage) -> float:
        """What a usage costs, in USD."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        fresh = usage.input_tokens - cached
        total = fresh * self.input_usd + cached * self.cached_usd
        return (total + usage.output_tokens * self.output_usd) / MILLION


@dataclass(frozen=True, slots=True)
class Prices:
    """The operator's prices, by the model's label or its bare name."""

    own: tuple[tuple[str, Price], ...] = ()

    def of(self, spec: ModelSpec) -> Price | None:
        """A model's price for a plain call, or None when nobody knows it."""
        own = dict(self.own)
        for name in (model_label(spec), spec.name):
            if name in own:
                return own[name]
        return _listed(spec)

    def unpriced(self, specs: Iterable[ModelSpec]) -> tuple[str, ...]:
        """The labels of those models whose price nobody knows."""
        return tuple(model_label(spec) for spec in specs if self.of(spec) is None)

    def priced(self, spec: ModelSpec, usage: Usage) -> Usage:
        """The usage with its cost, 0 where the price is unknown."""
        price = self.of(spec)
        return usage if price is None else replace(usage, usd=price.of(usage))


def parse_prices(text: str) -> Prices:
    """Read `RATCHET_PRICES`: `MODEL=INPUT/OUTPUT[/CACHED]; …` in USD per million tokens.

    MODEL is written as in `RATCHET_MODELS`, or only its name. Cached input costs as much as
    fresh input unless a third number says otherwise. ModelConfigError names a bad entry.
    """
    found: dict[str, Price] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        name, equals, amounts = entry.rpartition("=")
        name = " ".join(name.split())
        numbers = [_amount(part) for part in amounts.split("/")]
        if not equals or not name or len(numbers) not in {2, 3} or None in numbers:
            raise ModelConfigError(
                f"RATCHET_PRICES, entry {entry[:120]!r}: it must read MODEL=INPUT/OUTPUT or "
                "MODEL=INPUT/OUTPUT/CACHED, in USD per million tokens"
            )
        if name in found:
            raise ModelConfigError(f"RATCHET_PRICES: {name[:120]!r} is priced twice")
        known = [number for number in numbers if number is not None]
        found[name] = Price(known[0], known[1], known[-1] if len(known) == 3 else known[0])
    return Prices(tuple(found.items()))


def refuse_unpriced(prices: Prices, specs: Iterable[ModelSpec]) -> None:
    """ModelConfigError that names every model whose price nobody knows.

    For runs with a budget in USD: what cannot be priced cannot be stopped in time.
    """
    if unknown := prices.unpriced(specs):
        raise ModelConfigError(
            f"a budget in USD needs a price for {', '.join(unknown)}: set RATCHET_PRICES="
            f"'{unknown[0]}=INPUT/OUTPUT' (USD per million tokens; 0/0 for a model of your own)"
        )


def _amount(text: str) -> float | None:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip(), re.ASCII):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


_KNOWN: dict[ModelSpec, Price | None] = {}


def _listed(spec: ModelSpec) -> Price | None:
    """The price in the list that came with genai-prices; looked up once per model."""
    plain = replace(spec, settings=())
    if plain not in _KNOWN:
        _KNOWN[plain] = _look_up(plain)
    return _KNOWN[plain]


def _look_up(spec: ModelSpec) -> Price | None:
    import genai_prices  # takes seconds to load, and a run with prices of its own needs none

    where: dict[str, str] = (
        {"provider_api_url": spec.base_url} if spec.base_url else {"provider_id": spec.provider}
    )

    def cost(**tokens: int) -> float:
        usage = genai_prices.Usage(**tokens)
        found = genai_prices.calc_price(usage, spec.name, **where)  # type: ignore[call-overload]
        return float(found.total_price)

    try:
        # Far below every threshold from which a long context costs more.
        probe = 1000
        return Price(
            cost(input_tokens=probe) * MILLION / probe,
            cost(output_tokens=probe) * MILLION / probe,
            cost(input_tokens=probe, cache_read_tokens=probe) * MILLION / probe,
        )
    except LookupError:
        return None
