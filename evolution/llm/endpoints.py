"""Which model plays which role, as the operator wrote it down in one line of text.

    default=openai:gpt-5.1; modifier,exploiter=anthropic:claude-opus-4-1 max_tokens=16000;
    solver=http://localhost:8000/v1 qwen3:8b concurrency=2

Entries are separated by `;` or line breaks. Each names one or more roles (or `default`, for every
role that has no entry), then `provider:name`, or the base URL of an OpenAI-compatible endpoint and
the model's name there, then options. Keys of providers come from the process environment only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from evolution.llm.calls import ModelSpec, Role

PROVIDER_KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
"""The hosted providers, with the environment variables that may hold their key."""

COMPATIBLE = "compatible"
"""The provider of a model behind a base URL: anything that speaks OpenAI's chat completions."""

_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MASKS = (
    (re.compile(r"//\S*@"), "//…@"),
    (re.compile(r"(://[^\s?#]*[?#])\S*"), r"\1…"),
    (re.compile(r"(?i)\b(\w*(?:key|token|secret|password|auth)\w*=)\S+"), r"\1…"),
    (re.compile(r"\b(sk-|AIza|gsk_|hf_|xai-)[\w-]{8,}"), r"\1…"),
)
"""What is not shown of an entry: users and queries of URLs, values of what holds keys, and words
that look like one."""


class ModelConfigError(Exception):
    """What the operator wrote about models cannot be used; one line: which entry, what, why."""


@dataclass(frozen=True, slots=True)
class ModelTable:
    """Which model plays which role; roles without one cannot be played."""

    entries: tuple[tuple[Role, ModelSpec], ...] = ()

    def spec(self, role: Role) -> ModelSpec:
        """The model of a role; ModelConfigError when there is none."""
        for known, spec in self.entries:
            if known is role:
                return spec
        raise ModelConfigError(
            f"no model plays {role.value}: add {role.value}=… or default=… to RATCHET_MODELS"
        )

    @property
    def specs(self) -> tuple[ModelSpec, ...]:
        """Each model once, in the order of the roles."""
        return tuple(dict.fromkeys(spec for _, spec in self.entries))


def parse_models(text: str) -> ModelTable:
    """Read `RATCHET_MODELS`. Empty text is an empty table; ModelConfigError names a bad entry."""
    default: ModelSpec | None = None
    named: dict[Role, ModelSpec] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        left, equals, right = entry.partition("=")
        if not equals or not re.fullmatch(r"[\w,\s]+", left):
            raise _bad(entry, "it must read role=model, for example default=openai:gpt-5.1")
        spec = _spec(right.strip(), entry)
        for name in (part.strip() for part in left.split(",")):
            if name == "default":
                if default is not None:
                    raise _bad(entry, "default is named twice")
                default = spec
                continue
            role = _role(name, entry)
            if role in named:
                raise _bad(entry, f"{name} is named twice")
            named[role] = spec
    entries = ((role, named.get(role, default)) for role in Role)
    return ModelTable(tuple((role, spec) for role, spec in entries if spec is not None))


def parse_spec(text: str) -> ModelSpec:
    """Read one model without a role; ModelConfigError says what is wrong."""
    return _spec(text.strip(), text.strip())


def spec_text(spec: ModelSpec) -> str:
    """The text `parse_spec` reads back to the same model."""
    head = f"{spec.base_url} {spec.name}" if spec.base_url else f"{spec.provider}:{spec.name}"
    return " ".join((head, *(f"{name}={_shown(value)}" for name, value in spec.settings)))


def model_label(spec: ModelSpec) -> str:
    """The model for people and records: where it is and its name, without options."""
    return spec_text(ModelSpec(spec.provider, spec.name, spec.base_url))


def endpoint_of(spec: ModelSpec) -> str:
    """The name of the endpoint that serves a model: its base URL, or the provider."""
    return spec.base_url or spec.provider


def option[T: (int, float, str)](spec: ModelSpec, name: str, default: T) -> T:
    """An option's value, or the default. The type is the default's: the parser saw to it."""
    value = dict(spec.settings).get(name, default)
    return type(default)(value)


def key_names(spec: ModelSpec) -> tuple[str, ...]:
    """The environment variables that may hold this model's key, the first that is set counts."""
    named = option(spec, "key_env", "")
    return (named,) if named else PROVIDER_KEYS.get(spec.provider, ())


def key_of(spec: ModelSpec, environment: Mapping[str, str]) -> str:
    """The key to send, empty for an endpoint that was given none.

    ModelConfigError when the model needs one that is not set. Another provider's key is never
    sent to a base URL.
    """
    names = key_names(spec)
    for name in names:
        if key := environment.get(name, "").strip():
            return key
    if names:
        raise ModelConfigError(f"{model_label(spec)} needs a key: set {' or '.join(names)}")
    return ""


def _role(name: str, entry: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        known = ", ".join(role.value for role in Role)
        raise _bad(entry, f"{name!r} is no role; roles are default, {known}") from None


def _spec(text: str, entry: str) -> ModelSpec:
    words = text.split()
    if not words:
        raise _bad(entry, "no model is named")
    if _CONTROL.search(text):
        raise _bad(entry, "it holds control characters")
    head, rest = words[0], words[1:]
    if "://" not in head:
        provider, colon, name = head.partition(":")
        if not colon or not name or provider not in PROVIDER_KEYS:
            raise _bad(
                entry,
                f"a model reads {', '.join(p + ':NAME' for p in PROVIDER_KEYS)} or URL NAME",
            )
        return ModelSpec(provider, name, "", _options(rest, entry))
    url = _base_url(head, entry)
    if not rest or "=" in rest[0]:
        raise _bad(entry, "the model's name must follow the URL, after a space")
    return ModelSpec(COMPATIBLE, rest[0], url, _options(rest[1:], entry))


def _base_url(text: str, entry: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _bad(entry, "the URL cannot be read") from None
    if parts.username is not None or parts.password is not None:
        raise _bad(entry, "no user or password in the URL; name the key's variable by key_env=NAME")
    if parts.scheme not in {"http", "https"}:
        raise _bad(entry, "the URL must begin with http:// or https://")
    if not parts.hostname or port == 0:
        raise _bad(entry, "the URL names no host")
    if parts.query or parts.fragment:
        raise _bad(entry, "the URL must end with its path, such as /v1")
    return text.rstrip("/")


def _options(words: list[str], entry: str) -> tuple[tuple[str, float | int | str], ...]:
    found: dict[str, float | int | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        reader = _OPTIONS.get(name)
        if not equals or reader is None:
            raise _bad(entry, f"{name!r} is no option; options are {', '.join(sorted(_OPTIONS))}")
        if name in found:
            raise _bad(entry, f"{name} is given twice")
        try:
            found[name] = reader(value)
        except ValueError as error:
            raise _bad(entry, f"{name} must be {error}") from None
    return tuple(sorted(found.items()))


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,12}", text, re.ASCII) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def _number(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        is_number = re.fullmatch(r"\d{1,12}(\.\d{1,12})?", text, re.ASCII)
        value = float(text) if is_number else math.nan
        if not low <= value <= high:
            raise ValueError(f"a number from {low:g} to {high:g}")
        return value

    return read


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def _variable(text: str) -> str:
    if not _ENV_NAME.match(text):
        raise ValueError("the NAME of an environment variable, in capitals, never the key itself")
    return text


_OPTIONS: Mapping[str, Callable[[str], float | int | str]] = {
    # What the provider is told.
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "max_tokens": _whole(1, 1_000_000),
    "seed": _whole(0, 2**31 - 1),
    "thinking": _one_of("minimal", "low", "medium", "high", "xhigh", "max"),
    # How it is called.
    "timeout": _number(0.1, 3600),
    "deadline": _number(0.1, 86_400),
    "attempts": _whole(1, 20),
    "backoff": _number(0, 60),
    "concurrency": _whole(1, 1000),
    "per_minute": _whole(1, 1_000_000),
    "stream": _one_of("yes", "no"),
    "answers_as": str,
    "key_env": _variable,
}


def _shown(value: float | int | str) -> str:
    return f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _bad(entry: str, why: str) -> ModelConfigError:
    shown = _CONTROL.sub("?", entry)
    # Somebody may have written a key where a name, an option or a part of a URL belongs.
    for pattern, instead in _MASKS:
        shown = pattern.sub(instead, shown)
    return ModelConfigError(f"RATCHET_MODELS, entry {shown[:120]!r}: {why}")
