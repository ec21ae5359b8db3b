"""Whole runs on real workers whose models are on a server of ours, and what has to hold of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from tests.harness.lineages import KEY, endpoint
from tests.harness.server import ModelServer
from webapp.embedded.supervisor import Supervisor, worker_parts
from webapp.lifecycle import RunStatus
from webapp.models import EvolutionRun, EvolutionStep, ModelCall, Verification
from webapp.models.call import FINAL, TO_MODELS
from webapp.services import tending

WORKERS = ("worker1", "worker2")
LONG = timedelta(hours=1)


@contextmanager
def workers_on(
    server: ModelServer,
    model: str,
    log: Path,
    environment: Mapping[str, str],
    options: str = "attempts=8 timeout=20",
) -> Iterator[Supervisor]:
    """Two workers, a tender and beat whose models are on this server; their lines go to `log`."""
    seen = {
        **environment,
        "RATCHET_MODELS": endpoint(server.url, model, options),
        "HARNESS_KEY": KEY,
    }
    with (
        log.open("a", buffering=1) as lines,
        Supervisor(
            worker_parts(len(WORKERS)),
            write=lambda line: lines.write(f"{line}\n"),
            environment=seen,
        ) as supervisor,
    ):
        yield supervisor


@dataclass
class Killer:
    """Kills both workers after certain calls, and spares everybody the wait for their leases.

    `moments` are numbers of the server's calls, each with the seconds from the call to the kill;
    with none, the call is never answered.
    """

    supervisor: Supervisor
    moments: Mapping[int, float]
    deaths: int = 0
    hits: int = 0
    """How many pieces of work were under way when their worker died."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, number: int) -> None:
        """Told of every call before it is answered."""
        delay = self.moments.get(number)
        if delay == 0:
            self.kill()
        elif delay is not None:
            timer = threading.Timer(delay, self.kill)
            timer.daemon = True
            timer.start()

    def kill(self) -> None:
        """Both at once. Nobody who lives holds a lease then, so that all have run out."""
        with self._lock:
            for name in WORKERS:
                with suppress(ProcessLookupError, KeyError):
                    os.kill(self.supervisor.pids()[name], signal.SIGKILL)
            now = timezone.now()
            for model in (EvolutionStep, Verification):
                held = model._default_manager.filter(status=RunStatus.RUNNING)
                self.hits += held.update(lease_expires_at=now, sent_at=now - LONG)
            connection.close()  # this thread's
            self.deaths += 1


def finished(
    run: EvolutionRun,
    status: str,
    seconds: float = 600,
    tick: Callable[[EvolutionRun], None] = lambda _: None,
) -> EvolutionRun:
    """The run as soon as it has this status. Raises AssertionError for another end, or none."""
    begun = time.monotonic()
    while True:
        run.refresh_from_db()
        if run.status == status:
            return run
        seen = list(run.steps.values_list("status", "error", "refusals"))
        assert run.status in (RunStatus.RUNNING, RunStatus.QUEUED), (run.status, run.error, seen)
        assert time.monotonic() < begun + seconds, f"not {status} in {seconds} s: {seen}"
        tending.tend()  # as beat has it done, which comes round more seldom
        tick(run)
        time.sleep(0.5)


def digests(run: EvolutionRun) -> list[str]:
    """The accepted children, lineage by lineage and generation by generation."""
    steps = EvolutionStep.objects.filter(run=run, child__isnull=False)
    return list(steps.order_by("lineage", "generation").values_list("child__digest", flat=True))


def spent(run: EvolutionRun) -> int:
    """All tokens on record."""
    return _tokens(run, {})


def known(run: EvolutionRun) -> int:
    """The tokens on record that the endpoint told."""
    return _tokens(run, {"is_estimated": False})


def _tokens(run: EvolutionRun, which: Mapping[str, bool]) -> int:
    total = ModelCall.objects.filter(TO_MODELS, run=run, **which).aggregate(
        a=Sum("input_tokens"), b=Sum("output_tokens")
    )
    return (total["a"] or 0) + (total["b"] or 0)


def lost_answers(run: EvolutionRun, server: ModelServer) -> int:
    """How many answers were given and are not on record; every question has at most one there."""
    rows = ModelCall.objects.filter(TO_MODELS, run=run, outcome__in=FINAL)
    keys = list(rows.values_list("key", flat=True))
    assert len(keys) == len(set(keys))
    told = [call for call in server.served if call.fault is None or not call.fault.is_passing]
    return len(told) - len(keys)


def no_key_is_kept(logs: Sequence[Path]) -> None:
    """The key is in no row and no log."""
    for log in logs:
        assert KEY not in log.read_text()
    for call in ModelCall.objects.all():
        assert KEY not in f"{call.text}{call.reason}{call.model}"
