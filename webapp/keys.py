"""Keys of models belong to the workers: the process that strangers talk to holds none."""

from __future__ import annotations

import contextlib
import os

from django.conf import settings

from evolution.llm.endpoints import PROVIDER_KEYS, ModelConfigError, key_names, parse_models


def forget_keys() -> None:
    """Remove the keys of all providers and configured models from this process's environment."""
    names = {name for known in PROVIDER_KEYS.values() for name in known}
    with contextlib.suppress(ModelConfigError):  # said by the doctor, and on the models' page
        for spec in parse_models(settings.RATCHET_MODELS).specs:
            names.update(key_names(spec))
    for name in names:
        os.environ.pop(name, None)
