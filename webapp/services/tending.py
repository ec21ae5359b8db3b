"""What keeps everything moving when workers, brokers or machines go away."""

from __future__ import annotations

from webapp.lifecycle import RunStatus
from webapp.models import EvolutionRun
from webapp.services import leases, runs


def tend() -> dict[str, int]:
    """Expire leases, ring again, advance every running run. Safe to run twice at once."""
    expired = leases.expire()
    resent = leases.resend()
    running = list(EvolutionRun.objects.filter(status=RunStatus.RUNNING))
    for run in running:
        runs.advance_run(run)
    return {"expired": expired, "resent": resent, "running": len(running)}
