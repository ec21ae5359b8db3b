"""Harden the verifier of a stored environment: the trials here, the child in the database."""

from __future__ import annotations

from evolution import hardening
from evolution.contracts import StepConfig, StepEnd
from evolution.gates.answers import named
from evolution.hardening import Hardening
from evolution.memory import MemoryLog
from sandbox.base import TrialRunner
from sandbox.errors import SandboxUnavailable
from webapp.models import Environment, Errand
from webapp.services.environments import load_subject
from webapp.services.errands import Done
from webapp.services.events import append_event
from webapp.services.revisions import add_revision


def harden_environment(
    environment: Environment, runner: TrialRunner
) -> tuple[Environment | None, Hardening]:
    """Make the child whose tests refuse the cheats that these reward; None where there is none.

    The child is stored, not verified. Its proof's trials are not kept: the full protocol asks
    parent and child for the same cheats. Raises CorruptStore.
    """
    config = StepConfig(seed=0)
    found = hardening.harden(load_subject(environment), runner, lambda _: MemoryLog(), config)
    if found.child is None:
        append_event("environment.not_hardened", found.reason[:2000], environment=environment)
        return None, found
    child, _ = add_revision(
        environment,
        found.child,
        operator=hardening.NAME,
        title=f"Verifier hardened: {found.title}",
        why=f"Rewarded before, refused now: {named(found.refused, most=len(found.refused))}.",
    )
    return child, found


def carry_out_hardening(errand: Errand, runner: TrialRunner) -> Done:
    """What came of the errand to harden: a child, or why there is none.

    Raises SandboxUnavailable where broken machinery stands between, and CorruptStore.
    """
    child, found = harden_environment(errand.environment, runner)
    if found.end is StepEnd.INCONCLUSIVE:
        raise SandboxUnavailable(found.reason)
    answer = {"tried": list(found.tried), "refused": list(found.refused)}
    return Done(found.reason, answer, hardened=child)
