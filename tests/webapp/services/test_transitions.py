"""The tables of allowed transitions, tried pair by pair on real rows."""

from __future__ import annotations

import itertools

import pytest
from django.db import models

from tests.webapp.rows import make_child, make_run, make_seed, make_step
from webapp import lifecycle
from webapp.models import Environment, Event, EvolutionRun, EvolutionStep
from webapp.services import transitions
from webapp.services.errors import TransitionRefused

pytestmark = pytest.mark.django_db


def _row(kind: str) -> models.Model:
    seed = make_seed()
    if kind == "run":
        return make_run(seed)
    if kind == "step":
        return make_step(make_run(seed), seed)
    return make_child(seed)


@pytest.mark.parametrize(
    ("kind", "model", "field", "table"),
    [
        ("environment", Environment, "verification", lifecycle.VERIFICATION),
        ("environment", Environment, "review", lifecycle.REVIEW),
        ("run", EvolutionRun, "status", lifecycle.RUN),
        ("step", EvolutionStep, "status", lifecycle.RUN),
    ],
)
def test_exactly_the_allowed_transitions_happen(
    kind: str, model: type[models.Model], field: str, table: lifecycle.Table
) -> None:
    row = _row(kind)
    for source, target in itertools.product(table, table):
        model._default_manager.filter(pk=row.pk).update(**{field: source})
        row.refresh_from_db()
        events = Event.objects.count()
        if target in table[source]:
            transitions.move(row, field, target)
            assert getattr(row, field) == target
            assert Event.objects.count() == events + 1
        else:
            with pytest.raises(TransitionRefused):
                transitions.move(row, field, target)
            row.refresh_from_db()
            assert getattr(row, field) == source
            assert Event.objects.count() == events


def test_a_condition_that_does_not_hold_refuses() -> None:
    row = _row("step")
    with pytest.raises(TransitionRefused):
        transitions.move(row, "status", "running", where={"attempt": 5})
