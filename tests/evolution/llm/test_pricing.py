"""Prices: the operator's own first, the list's else, and a name for what nobody knows."""

from __future__ import annotations

import pytest

from evolution.llm.calls import Usage
from evolution.llm.endpoints import ModelConfigError, parse_spec
from evolution.llm.pricing import Price, Prices, parse_prices, refuse_unpriced

LOCAL = parse_spec("http://localhost:8000/v1 qwen3:8b")


def test_a_price_counts_input_cached_and_output_apart() -> None:
    price = Price(2.0, 10.0, 0.5)
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    assert price.of(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)


def test_the_operators_price_comes_before_the_list() -> None:
    listed = Prices().of(parse_spec("openai:gpt-4o"))
    assert listed is not None
    assert 0 < listed.cached_usd < listed.input_usd < listed.output_usd
    own = parse_prices("openai:gpt-4o=7/8/9; qwen3:8b=0/0")
    assert own.of(parse_spec("openai:gpt-4o temperature=0")) == Price(7, 8, 9)
    assert own.of(LOCAL) == Price(0, 0, 0)


def test_what_nobody_knows_is_refused_by_name() -> None:
    assert Prices().priced(LOCAL, Usage(5, 5)).usd == 0
    with pytest.raises(ModelConfigError, match="price for http://localhost:8000/v1 qwen3:8b"):
        refuse_unpriced(Prices(), [LOCAL, parse_spec("openai:gpt-4o")])
    refuse_unpriced(parse_prices("qwen3:8b=0/0"), [LOCAL])


@pytest.mark.parametrize(
    "text", ["x", "x=1", "x=1/2/3/4", "x=a/b", "x=-1/2", "=1/2", "x=nan/1", "x=1/1; x=2/2"]
)
def test_a_mistake_is_one_line(text: str) -> None:
    with pytest.raises(ModelConfigError, match="RATCHET_PRICES") as caught:
        parse_prices(text)
    assert "\n" not in str(caught.value)
