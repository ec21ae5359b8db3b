"""The Celery application. Jobs carry ids only; the rows they name are the truth."""

from __future__ import annotations

import os
import socket

from celery import Celery, signals
from django.conf import settings
from kombu import Queue
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

QUEUES = ("default", "evolution", "sandbox")
TEND = "webapp.jobs.tend"
TEND_SECONDS = 10.0
"""How often the tending job looks for rows that wait too long and for leases that ran out."""

TRANSPORT_ALIASES["ratchet-folder"] = "webapp.embedded.broker:Transport"


# By name, so that a sender needs to import nothing. What is not named goes to `default`.
ROUTES = {
    "webapp.jobs.run_step": {"queue": "evolution"},  # may hold model keys
    "webapp.jobs.run_errand": {"queue": "evolution"},
    "webapp.jobs.verify": {"queue": "sandbox"},  # may hold a Docker socket
}

app = Celery("ratchet")
app.conf.update(
    broker_url="ratchet-folder://localhost"
    if settings.IS_BROKER_EMBEDDED
    else settings.CELERY_BROKER_URL,
    broker_transport_options=(
        {"folder": str(settings.BROKER_FOLDER)}
        if settings.IS_BROKER_EMBEDDED
        else {"visibility_timeout": 3600, "socket_timeout": 10, "socket_connect_timeout": 5}
    ),
    broker_connection_retry_on_startup=True,
    result_backend=None,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    task_queues=[Queue(name, routing_key=name) for name in QUEUES],
    task_default_queue="default",
    task_default_exchange_type="direct",
    task_create_missing_queues=False,
    task_routes=ROUTES,
    task_acks_late=True,
    task_reject_on_worker_lost=False,  # the lease runs out and the row is sent again
    task_publish_retry_policy={"max_retries": 3, "interval_start": 0.1, "interval_max": 1.0},
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    beat_scheduler="celery.beat:Scheduler",  # nothing to remember: every entry starts anew
    beat_schedule={"tend": {"task": TEND, "schedule": TEND_SECONDS}},
    timezone="UTC",
    enable_utc=True,
)
app.autodiscover_tasks(["webapp"], related_name="jobs")


@signals.heartbeat_sent.connect
def _show_alive(**_: object) -> None:
    """For the health check of a worker's container."""
    (settings.RATCHET_HOME / f"alive-{socket.gethostname()}").touch()


@signals.task_postrun.connect
def _show_tended(task: object = None, state: str = "", **_: object) -> None:
    """For the health check of beat's and the tender's containers."""
    if getattr(task, "name", "") == TEND and state == "SUCCESS":
        (settings.RATCHET_HOME / "tended").touch()


@signals.setup_logging.connect
def _keep_django_logging(**_: object) -> None:
    """Celery leaves the logging of the settings alone once somebody listens here."""
