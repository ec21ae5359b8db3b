"""Keys of models belong to the workers of the queue `evolution`: no other process holds any."""

from __future__ import annotations

import contextlib
import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from evolution.llm.endpoints import PROVIDER_KEYS, ModelConfigError, key_names, parse_models


def key_variables() -> frozenset[str]:
    """The variables that may hold a key: of all providers, and of the configured models."""
    names = {name for known in PROVIDER_KEYS.values() for name in known}
    # Said by the doctor, and on the models' page; or there are no settings at all.
    with contextlib.suppress(ModelConfigError, ImproperlyConfigured):
        for spec in parse_models(settings.RATCHET_MODELS).specs:
            names.update(key_names(spec))
    return frozenset(names)


def forget_keys() -> None:
    """Remove those keys from this process's environment.

    `/proc` goes on showing what a process was started with: who starts the web process leaves
    them out, this is for what `.env` brings and for other servers.
    """
    for name in key_variables():
        os.environ.pop(name, None)
