"""Whether the configured models answer. Each is asked for one word, once, by who holds its key."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from django.db import DatabaseError

from evolution.llm.calls import CallOutcome, ModelSpec, Role
from evolution.llm.endpoints import ModelConfigError, model_label
from evolution.llm.pricing import Prices
from evolution.llm.probe import Probe, probe_model
from webapp import model_forecast, model_wiring
from webapp.diagnosis import Finding, Level
from webapp.selectors.model_settings import CHECKED
from webapp.services.events import append_event

REMEDIES = {
    CallOutcome.AUTH: "mend that in the environment of the workers, and ask again there",
    CallOutcome.CONNECTION: "start that server, or correct its URL in RATCHET_MODELS",
    CallOutcome.BAD_REQUEST: "correct the name of the model in RATCHET_MODELS",
    CallOutcome.RATE_LIMITED: "wait, or lower its concurrency and per_minute in RATCHET_MODELS",
}


def check_models() -> Iterator[Finding]:
    """A line for each model, and one for the roles that none plays; kept for the web page."""
    try:
        table, prices = model_forecast.model_table(), model_forecast.prices()
    except ModelConfigError as error:
        yield Finding("models", Level.WARN, str(error), "correct that entry")
        return
    with ThreadPoolExecutor(8) as pool:
        probes = pool.map(lambda s: probe_model(s, model_wiring.lines(), prices), table.specs)
        found = dict(zip(table.specs, probes, strict=True))
    told: dict[str, list[str]] = {}
    for spec, probe in found.items():
        level, said, remedy = _found(spec, probe, prices)
        roles = ", ".join(role.value for role, one in table.entries if one == spec)
        told[model_label(spec)] = [level.value, said]
        yield Finding("model", level, f"{model_label(spec)} ({roles}): {said}", remedy)
    missing = [role.value for role in Role if role not in dict(table.entries)]
    if missing:
        text = f"nobody plays {', '.join(missing)}"
        yield Finding("models", Level.WARN, text, "add default=… or those roles to RATCHET_MODELS")
    try:
        append_event(CHECKED, "", facts={"models": told, "host": socket.gethostname()})
    except DatabaseError:
        return  # the line about the database says it


def _found(spec: ModelSpec, probe: Probe, prices: Prices) -> tuple[Level, str, str]:
    if not probe.is_good:
        remedy = REMEDIES.get(probe.outcome, "see the reason; the endpoint's own log may say more")
        return Level.WARN, probe.reason, remedy
    price = prices.of(spec)
    if price is None:
        cost = "price unknown: set RATCHET_PRICES before a budget in USD"
    else:
        cost = f"{price.input_usd:g} in, {price.output_usd:g} out USD per million tokens"
    return Level.OK, f"answers in {probe.seconds:.1f} s; {cost}", ""
