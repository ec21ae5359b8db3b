"""Runs: the list, a new one, progress, yield, events, pause and cancel."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp import builders
from tests.webapp.views.conftest import HTMX, World
from webapp.lifecycle import RunStatus
from webapp.models import Environment, Event, EvolutionRun, Role


@pytest.fixture
def operator(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.OPERATOR)


def test_the_run_page_counts_what_became_of_every_candidate(world: World, viewer: Client) -> None:
    Environment.objects.filter(pk=world.child.pk).update(review="approved")
    context = viewer.get(f"/runs/{world.run.pk}/").context
    assert [(s.label, s.count) for s in context["funnel"]] == [
        ("proposed", 3),
        ("built", 3),
        ("valid", 2),
        ("approved", 1),
    ]
    cells = {(c.direction, c.aspect): (c.valid, c.built) for r in context["grid"] for c in r.cells}
    assert len(cells) == 9
    assert cells["scenario", "constraints"] == (1, 1)
    assert cells["skill", "resources"] == (0, 1)
    assert cells["length", "resources"] == (0, 0)
    assert [(g["generation"], g["built"], g["valid"]) for g in context["generations"]] == [
        (1, 2, 1),
        (2, 1, 1),
    ]
    assert [(f.gate, f.count) for f in context["failures"]] == [("mutants", 1)]


def test_refused_plans_count_as_proposed(world: World, viewer: Client) -> None:
    builders.add_step(world.run, world.child, 1, refusals=["skill: no operator applies"] * 4)
    funnel = viewer.get(f"/runs/{world.run.pk}/").context["funnel"]
    assert (funnel[0].count, funnel[1].count) == (7, 3)


def test_progress_is_of_the_planned_steps(world: World, viewer: Client) -> None:
    progress = viewer.get(f"/runs/{world.run.pk}/").context["progress"]
    assert (progress.done, progress.planned) == (1, 6)
    assert progress.seconds_left > 0
    assert not progress.is_stalled


def test_a_silent_run_is_called_stalled(world: World, viewer: Client) -> None:
    Event.objects.filter(run=world.run).update(at=timezone.now() - timedelta(minutes=9))
    response = viewer.get(f"/runs/{world.run.pk}/")
    assert response.context["progress"].is_stalled
    assert "stalled" in response.text


def test_the_live_part_is_sent_again_only_when_something_changed(
    world: World, viewer: Client
) -> None:
    page = viewer.get(f"/runs/{world.run.pk}/")
    last = page.context["last_event"]
    url = f"/runs/{world.run.pk}/live/?after={last}"
    first = viewer.get(url, headers=HTMX)
    assert first.text.lstrip().startswith('<div id="live"')
    tag = first.headers["HX-PTag"]
    assert viewer.get(url, headers={**HTMX, "HX-PTag": tag}).status_code == 304
    Event.objects.create(kind="note", text="a step began", run=world.run)
    second = viewer.get(url, headers={**HTMX, "HX-PTag": tag})
    assert second.status_code == 200
    assert "1 new event: show" in second.text


def test_polling_ends_with_the_run(world: World, viewer: Client) -> None:
    assert "every 2s" in viewer.get(f"/runs/{world.run.pk}/live/", headers=HTMX).text
    EvolutionRun.objects.filter(pk=world.run.pk).update(
        status=RunStatus.COMPLETED, finished_at=timezone.now()
    )
    assert "every 2s" not in viewer.get(f"/runs/{world.run.pk}/live/", headers=HTMX).text


def test_events_are_shown_newest_first_and_paged(world: World, viewer: Client) -> None:
    Event.objects.bulk_create(
        Event(kind="note", text=f"event {i}", run=world.run) for i in range(70)
    )
    url = f"/runs/{world.run.pk}/events/"
    seen: list[int] = []
    while url:
        events = viewer.get(url, headers=HTMX).context["events"]
        seen += [event.pk for event in events]
        url = f"/runs/{world.run.pk}/events/?before={seen[-1]}" if len(events) == 30 else ""
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == Event.objects.filter(run=world.run).count()
    assert viewer.get(f"/runs/{world.run.pk}/events/").text.startswith("<!doctype html>")


def test_a_run_is_started_from_the_form(world: World, operator: Client) -> None:
    data = {
        "lineages": [world.seed.lineage_id],
        "generations": 2,
        "children": 3,
        "effort": "high",
        "seed": 11,
        "directions": ["skill"],
        "name": "Second",
    }
    response = operator.post("/runs/new/", data)
    run = EvolutionRun.objects.get(name="Second")
    assert response.url == f"/runs/{run.pk}/"
    assert (run.generations, run.children, run.effort, run.seed) == (2, 3, "high", 11)
    assert run.directions == ["skill"]
    assert list(run.lineages.all()) == [world.seed.lineage]


@pytest.mark.parametrize(
    "change",
    [
        *({"lineages": []}, {"generations": 51}, {"children": 0}, {"effort": "huge"}),
        *({"budget_usd": 3}, {"step_usd": 1}),  # it asks no model
    ],
)
def test_a_run_that_makes_no_sense_is_refused_beside_the_field(
    change: dict[str, object], world: World, operator: Client
) -> None:
    data = {
        "lineages": [world.seed.lineage_id],
        "generations": 2,
        "children": 3,
        "effort": "low",
        "seed": 0,
    }
    response = operator.post("/runs/new/", {**data, **change})
    assert response.status_code == 422
    assert set(change) <= set(response.context["form"].errors)
    assert EvolutionRun.objects.count() == 1


def test_a_run_is_paused_resumed_and_cancelled(world: World, operator: Client) -> None:
    def change(name: str) -> str:
        response = operator.post(f"/runs/{world.run.pk}/{name}/", follow=True)
        assert response.status_code == 200
        world.run.refresh_from_db()
        return world.run.status

    assert change("pause") == "paused"
    assert change("resume") == "running"
    assert change("cancel") == "cancelled"


def test_what_cannot_be_done_is_said(world: World, operator: Client) -> None:
    EvolutionRun.objects.filter(pk=world.run.pk).update(status=RunStatus.COMPLETED)
    response = operator.post(f"/runs/{world.run.pk}/pause/", follow=True)
    assert "cannot become paused" in response.text
