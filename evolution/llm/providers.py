"""Models of pydantic-ai for the specs: every client is ours, is bounded, and never retries."""

from __future__ import annotations

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from evolution.llm.calls import ModelSpec
from evolution.llm.endpoints import option
from evolution.llm.transport import http_client

ATTEMPT_SECONDS = 300.0
"""One attempt at most, from the request to the last byte of the answer."""

NO_KEY = "none"
"""Sent where an endpoint needs no key; the clients insist on one."""

OUTPUT_TOKENS = 16_000
"""Tokens of one answer at most, unless the operator says otherwise."""

_TOLD = ("temperature", "top_p", "seed", "thinking")

HOSTED_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
"""Where the hosted providers are: their own libraries would let the environment change it."""


def build_model(spec: ModelSpec, key: str) -> Model:
    """The model of a spec. Its client belongs to the event loop that first uses it."""
    url = spec.base_url or HOSTED_URLS[spec.provider]
    client = http_client(url, attempt_seconds(spec))
    build = {"anthropic": _anthropic, "google": _google}.get(spec.provider, _openai)
    return build(spec, key or NO_KEY, url, client)


# Each library takes a second or two to load, so only those are loaded that are used.


def _openai(spec: ModelSpec, key: str, url: str, client: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    openai = AsyncOpenAI(api_key=key, base_url=url, http_client=client, max_retries=0)
    if spec.provider == "openai":
        own = OpenAIProvider(openai_client=openai)
        return OpenAIChatModel(spec.name, provider=own, settings=model_settings(spec))
    # Whose account it is at OpenAI is nobody else's business.
    openai.organization = openai.project = None
    # Small servers take no notice of OpenAI's newer name for the bound, and would not end.
    plain = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=False,
        openai_supports_strict_tool_definition=False,
    )
    other = OpenAICompatibleProvider(spec.provider, openai_client=openai, profile=plain)
    return OpenAIChatModel(spec.name, provider=other, settings=model_settings(spec))


def _anthropic(spec: ModelSpec, key: str, url: str, client: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    anthropic = AsyncAnthropic(api_key=key, base_url=url, http_client=client, max_retries=0)
    provider = AnthropicProvider(anthropic_client=anthropic)
    return AnthropicModel(spec.name, provider=provider, settings=model_settings(spec))


def _google(spec: ModelSpec, key: str, url: str, client: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=key, base_url=url, http_client=client)
    return GoogleModel(spec.name, provider=provider, settings=model_settings(spec))


def attempt_seconds(spec: ModelSpec) -> float:
    """The seconds one attempt may take."""
    return option(spec, "timeout", ATTEMPT_SECONDS)


def output_tokens(spec: ModelSpec) -> int:
    """The tokens one answer may have."""
    return option(spec, "max_tokens", OUTPUT_TOKENS)


def model_settings(spec: ModelSpec) -> ModelSettings:
    """What the provider is told with every request of this model."""
    chosen = dict(spec.settings)
    settings = ModelSettings(max_tokens=output_tokens(spec))
    for name in _TOLD:
        if name in chosen:
            settings[name] = chosen[name]  # type: ignore[literal-required]
    return settings
