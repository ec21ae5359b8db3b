"""Hardening a verifier on request: for which environments there is anything to do."""

from __future__ import annotations

from evolution.contracts import GateStatus
from evolution.gates.exploits import GATE
from evolution.hardening import NAME
from webapp.lifecycle import TrialStatus
from webapp.models import Environment, GateRecord


def hardening_refusal(environment: Environment) -> str:
    """Why its verifier needs no hardening now, or cannot have it, in one line; empty where it can.

    Only what rewards a known cheat can be hardened; the newest full verification says so.
    """
    answers = GateRecord.objects.filter(
        verification__environment=environment,
        verification__status=TrialStatus.COMPLETED,
        gate=GATE,
    )
    newest = answers.order_by("-verification__number").first()
    if newest is None:
        return "no cheat was tried on it: verify it in full first"
    if newest.status == GateStatus.INCONCLUSIVE:
        return f"it is not known whether cheats are rewarded: {newest.reason}"
    if newest.status != GateStatus.FAILED:
        return "no cheat that is known is rewarded here"
    child = environment.children.filter(operator=NAME).order_by("pk").first()
    return f"environment {child.pk} is its hardened child" if child else ""
