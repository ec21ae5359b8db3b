"""Jobs: parse ids, ask the wiring, do the work, record. The row decides, never the message."""

from __future__ import annotations

from celery import shared_task

from webapp import wiring
from webapp.adapters import work
from webapp.adapters.errands import work_on_errand
from webapp.services import tending


@shared_task(name="webapp.jobs.run_step", queue="evolution")
def run_step(step_id: int) -> None:
    """Carry out one evolution step."""
    work.work_on_step(step_id, wiring.runner, wiring.author_for, wiring.worker_name())


@shared_task(name="webapp.jobs.run_errand", queue="evolution")
def run_errand(errand_id: int) -> None:
    """Carry out what a person asked for about an environment."""
    work_on_errand(errand_id, wiring.carry_out_errand, wiring.worker_name())


@shared_task(name="webapp.jobs.verify", queue="sandbox")
def verify(verification_id: int) -> None:
    """Carry out one verification."""
    work.work_on_verification(verification_id, wiring.runner, wiring.worker_name())


@shared_task(name="webapp.jobs.tend", queue="default")
def tend() -> None:
    """Put lost work back, ring again, keep runs moving, remove leftovers."""
    tending.tend()
    wiring.reap()
