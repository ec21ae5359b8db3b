"""RATCHET_MODELS: every role's model from one line, every mistake named with its entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.llm.calls import CallOutcome, ModelSpec, Role
from evolution.llm.endpoints import (
    ModelConfigError,
    key_of,
    model_label,
    option,
    parse_models,
    parse_spec,
    spec_text,
)
from evolution.llm.pricing import parse_prices


def test_roles_get_their_models_and_the_rest_the_default() -> None:
    table = parse_models(
        "default=openai:gpt-5.1; modifier,exploiter=anthropic:claude-opus-4-1 max_tokens=9000\n"
        "solver = http://localhost:8000/v1/ qwen3:8b concurrency=2 temperature=0.5"
    )
    assert table.spec(Role.PROPOSER) == ModelSpec("openai", "gpt-5.1")
    assert table.spec(Role.EXPLOITER).settings == (("max_tokens", 9000),)
    solver = table.spec(Role.SOLVER)
    assert model_label(solver) == "http://localhost:8000/v1 qwen3:8b"
    assert option(solver, "concurrency", 4) == 2
    assert option(solver, "temperature", 1.0) == 0.5
    assert option(solver, "attempts", 5) == 5
    assert len(table.specs) == 3


def test_a_role_without_a_model_is_named() -> None:
    assert parse_models("").entries == ()
    with pytest.raises(ModelConfigError, match="no model plays judge"):
        parse_models("solver=openai:x").spec(Role.JUDGE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt", "role=model"),
        ("default=", "no model is named"),
        ("default=gpt-5", "openai:NAME"),
        ("default=mistral:x", "openai:NAME"),
        ("default=openai:", "openai:NAME"),
        ("writer=openai:x", "'writer' is no role"),
        ("default=openai:a; default=openai:b", "default is named twice"),
        ("judge=openai:a; judge=openai:b", "judge is named twice"),
        ("default=ftp://h/v1 m", "http:// or https://"),
        ("default=file:///etc/passwd m", "http:// or https://"),
        ("default=http:///v1 m", "names no host"),
        ("default=http://h:0/v1 m", "names no host"),
        ("default=http://h:99999/v1 m", "cannot be read"),
        ("default=http://[::1/v1 m", "cannot be read"),
        ("default=http://h/v1?key=1 m", "end with its path"),
        ("default=http://h/v1", "name must follow"),
        ("default=http://h/v1 seed=1", "name must follow"),
        ("default=openai:x temperature=hot", "a number from 0 to 2"),
        ("default=openai:x temperature=nan", "a number from 0 to 2"),
        ("default=openai:x max_tokens=0", "a whole number"),
        ("default=openai:x max_tokens=1_000", "a whole number"),
        ("default=openai:x stream=maybe", "one of yes, no"),
        ("default=openai:x colour=red", "is no option"),
        ("default=openai:x seed=1 seed=2", "seed is given twice"),
        ("default=openai:x\x1b[31m", "control characters"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_entry(text: str, said: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        parse_models(text)
    line = str(caught.value)
    assert said in line
    assert line.startswith("RATCHET_MODELS")
    assert "\n" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize(
    "text",
    [
        "default=http://me:s3cret@h/v1 m",
        "default=http://me:half/s3cret@h/v1 m",
        "default=http://h/v1?key=s3cret m",
        "default=http://h/v1#s3cret m",
        "default=openai:x key_env=s3cret",
        "default=openai:x api_key=s3cret",
        "default=openai:x TOKEN=s3cret",
        "default=sk-proj-s3cret-0123456789",
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        parse_models(text)
    assert "s3cret" not in str(caught.value)


_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.decimals(0, 2, places=3).map(float),
        "max_tokens": st.integers(1, 1_000_000),
        "per_minute": st.integers(1, 1_000_000),
        "stream": st.sampled_from(["yes", "no"]),
        "timeout": st.decimals("0.1", 3600, places=2).map(float),
    },
)


@given(
    st.sampled_from([("openai", ""), ("google", ""), ("compatible", "http://10.0.0.1:8000/v1")]),
    st.from_regex(r"[a-z][a-z0-9.:/_-]{0,20}", fullmatch=True),
    _OPTIONS,
)
def test_a_spec_and_its_text_are_the_same(
    where: tuple[str, str], name: str, options: dict[str, float | int | str]
) -> None:
    spec = ModelSpec(where[0], name, where[1], tuple(sorted(options.items())))
    assert parse_spec(spec_text(spec)) == spec


def test_a_key_goes_to_its_own_endpoint_only() -> None:
    keys = {"OPENAI_API_KEY": "sk-1", "MY_KEY": "sk-2", "GEMINI_API_KEY": "sk-3"}
    assert key_of(parse_spec("openai:x"), keys) == "sk-1"
    assert key_of(parse_spec("google:x"), keys) == "sk-3"
    assert key_of(parse_spec("http://h/v1 x"), keys) == ""
    assert key_of(parse_spec("http://h/v1 x key_env=MY_KEY"), keys) == "sk-2"
    with pytest.raises(ModelConfigError, match="set ANTHROPIC_API_KEY"):
        key_of(parse_spec("anthropic:x"), keys)


def test_what_the_documentation_says_is_so() -> None:
    text = (Path(__file__).parents[3] / "docs" / "models.md").read_text()
    (models,) = re.findall(r'RATCHET_MODELS="(.*)"', text)
    (prices,) = re.findall(r'RATCHET_PRICES="(.*)"', text)
    table = parse_models(models)
    assert {role for role, _ in table.entries} == set(Role)
    assert parse_prices(prices).of(table.spec(Role.SOLVER)) is not None
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", text, re.MULTILINE)
    named = {name for cell, _ in rows for name in re.findall(r"`(\w+)`", cell)}
    with pytest.raises(ModelConfigError) as caught:
        parse_models("default=openai:x nothing=1")
    known = set(str(caught.value).partition("options are ")[2].split(", "))
    assert known <= named
    assert {outcome.value for outcome in CallOutcome} - {"answered", "cancelled"} <= set(
        re.findall(r"`(\w+)`", text)
    )
