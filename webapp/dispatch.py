"""Named jobs are sent after commit. The row is the request for work; a message is a doorbell."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

RUN_STEP = "webapp.jobs.run_step"
VERIFY = "webapp.jobs.verify"
RUN_ERRAND = "webapp.jobs.run_errand"

_is_muted: ContextVar[bool] = ContextVar("is_muted", default=False)


@contextmanager
def muted() -> Iterator[None]:
    """Send nothing in this block: the caller does the work itself."""
    token = _is_muted.set(True)
    try:
        yield
    finally:
        _is_muted.reset(token)


def send(job: str, *ids: int) -> None:
    """Send a job once the transaction commits. A broker that is away loses nothing."""
    if not _is_muted.get():
        transaction.on_commit(lambda: _send_now(job, ids))


def _send_now(job: str, ids: tuple[int, ...]) -> None:
    try:
        current_app.send_task(job, args=list(ids), ignore_result=True)
    except (OperationalError, OSError) as error:
        logger.warning("broker away, %s %s will be sent again later: %s", job, ids, error)
