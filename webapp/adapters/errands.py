"""One errand: claim the row, ask the model without a transaction, record under the lease."""

from __future__ import annotations

import logging
from collections.abc import Callable

from evolution.llm.budget import STEP_STOP
from evolution.llm.calls import BudgetStop, ModelUnavailable, StepBudgetStop
from evolution.llm.endpoints import ModelConfigError
from sandbox.errors import SandboxError
from webapp.adapters.work import held
from webapp.models import Errand
from webapp.services import errands, leases
from webapp.services.errands import Done
from webapp.services.errors import TransitionRefused
from webapp.store import CorruptStore

logger = logging.getLogger(__name__)

STOPS = (
    BudgetStop,
    StepBudgetStop,
    ModelUnavailable,
    ModelConfigError,
    SandboxError,
    CorruptStore,
)
"""What keeps an errand from being carried out, and is no answer to it."""


def work_on_errand(errand_id: int, carry_out: Callable[[Errand], Done], worker: str) -> bool:
    """Carry out one errand; False when it is not ours to do (taken, done, gone)."""
    errand = Errand.objects.filter(pk=errand_id).first()
    if errand is None or not leases.claim(errand):
        return False
    logger.debug("%s works on errand %s", worker, errand.pk)
    try:
        try:
            with held(errand):
                done = carry_out(errand)
        except STOPS as stop:
            errands.break_off(errand, str(stop).replace(STEP_STOP, "its budget is used up"))
        else:
            errands.record_errand(errand, done)
    except TransitionRefused:
        logger.warning("errand %s: the lease was lost, its result is dropped", errand.pk)
    return True
