"""The composition root's other half: which models play the roles, and what they are given.

Loaded only when a model is used, or asked about: the clients of the providers take seconds.
"""

from __future__ import annotations

from django.conf import settings

from evolution.llm.endpoints import ModelConfigError, ModelTable, parse_models
from evolution.llm.pricing import Prices, parse_prices
from evolution.ports import Author
from webapp.adapters.calls import DatabaseCallLog
from webapp.models import EvolutionStep


def model_table() -> ModelTable:
    """Which model plays which role. Raises ModelConfigError."""
    return parse_models(settings.RATCHET_MODELS)


def prices() -> Prices:
    """What tokens cost: the operator's prices, then the published ones. Raises ModelConfigError."""
    return parse_prices(settings.RATCHET_PRICES)


def llm_author(step: EvolutionStep, log: DatabaseCallLog) -> Author:
    """The author that asks models, for one step. Raises ModelConfigError."""
    raise ModelConfigError("no author of models is here yet")
