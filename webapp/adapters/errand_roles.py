"""Which role is asked what for an errand. Load it only when a model is asked: it takes seconds."""

from __future__ import annotations

from evolution.agents.asking import GaveUp
from evolution.agents.cold_start import write_solution
from evolution.agents.means import Means
from evolution.agents.triage import MOST_TRIALS, triage
from evolution.contracts import StepConfig
from evolution.memory import MemoryLog
from webapp.models import Errand, ErrandKind
from webapp.services.environments import load_subject
from webapp.services.errands import Done
from webapp.services.unpassed import told_attempts
from webapp.store import load_bundle


def ask_role(errand: Errand, means: Means) -> Done:
    """Have it done. Raises CorruptStore, and what keeps a role from its work."""
    if errand.kind == ErrandKind.SOLVE:
        return _solve(errand, means)
    return _triage(errand, means)


def _solve(errand: Errand, means: Means) -> Done:
    # Its trials are not kept: the child that comes of it is verified by itself.
    made = write_solution(
        means,
        load_subject(errand.environment),
        MemoryLog(),
        StepConfig(seed=0),
        number=errand.number,
    )
    if isinstance(made, str):
        return Done(made)
    return Done("a reference solution was written, and the gates accept it", solved=made.bundle)


def _triage(errand: Errand, means: Means) -> Done:
    environment = errand.environment
    place = f"triage/{environment.digest[:12]}/{errand.number}"
    told = told_attempts(environment, MOST_TRIALS)
    found = triage(means, place, load_bundle(environment), told)
    if isinstance(found, GaveUp):
        return Done(f"nobody could tell: {found.reason}")
    return Done(f"{found.kind.replace('_', ' ')}: {found.reason}", answer=found.model_dump())
