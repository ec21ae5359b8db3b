"""A run carried out by this very process, without workers or broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection
from django.utils import timezone

from webapp import dispatch
from webapp.adapters import work
from webapp.adapters.work import AuthorFor, RunnerFor
from webapp.lifecycle import RunStatus
from webapp.models import EvolutionRun, EvolutionStep, Verification
from webapp.services import tending

POLL_SECONDS = 0.1


def carry_out(
    run: EvolutionRun,
    runner_for: RunnerFor,
    author_for: AuthorFor,
    *,
    worker: str,
    threads: int,
    tick: Callable[[EvolutionRun], None],
) -> None:
    """Work on a run's steps until it ends; `tick` is called now and then to show progress.

    Leaves the run paused when interrupted, so that it can be resumed.
    """
    stop = threading.Event()

    def labour() -> None:
        with dispatch.muted():
            try:
                while not stop.is_set():
                    if not _work_on_next(run, runner_for, author_for, worker):
                        stop.wait(POLL_SECONDS)
            finally:
                connection.close()

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(labour) for _ in range(threads)]
        try:
            _watch(run, tick, futures_failed=lambda: any(f.done() for f in futures))
        finally:
            stop.set()
        for future in futures:
            future.result()


def _watch(
    run: EvolutionRun,
    tick: Callable[[EvolutionRun], None],
    *,
    futures_failed: Callable[[], bool],
) -> None:
    while run.status == RunStatus.RUNNING and not futures_failed():
        time.sleep(POLL_SECONDS * 3)
        run.refresh_from_db()
        tick(run)
        with dispatch.muted():
            tending.tend()


def _work_on_next(
    run: EvolutionRun, runner_for: RunnerFor, author_for: AuthorFor, worker: str
) -> bool:
    verification = Verification.objects.filter(
        status=RunStatus.QUEUED, environment__lineage__runs=run
    ).first()
    if verification is not None:
        return work.work_on_verification(verification.pk, runner_for, worker)
    due = EvolutionStep.objects.filter(
        run=run, status=RunStatus.QUEUED, sent_at__lte=timezone.now()
    )
    step = due.order_by("pk").first()
    return step is not None and work.work_on_step(step.pk, runner_for, author_for, worker)
