"""The dashboard and the audit list."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from tests.webapp.views.conftest import World
from webapp.models import Event, Role


def test_the_dashboard_counts_what_there_is(world: World, reviewer: Client) -> None:
    context = reviewer.get("/").context
    totals = context["totals"]
    assert (totals.seeds, totals.evolved, totals.valid, totals.waiting) == (1, 3, 2, 2)
    assert [row.environment.pk for row in context["queue"]] == [
        world.child.pk,
        world.grandchild.pk,
    ]
    assert [run.pk for run, _ in context["runs"]] == [world.run.pk]


def test_difficulty_rises_with_n_beside_every_mean(world: World, viewer: Client) -> None:
    response = viewer.get("/")
    points = response.context["points"]
    assert [(p.generation, p.n, p.demands) for p in points] == [(0, 1, 0), (1, 1, 1), (2, 1, 2)]
    assert points[0].d_t < points[1].d_t < points[2].d_t
    assert response.text.count("<circle") >= 6
    assert "generation 2: 2.00, n = 1" in response.text


def test_a_viewer_is_not_offered_what_is_out_of_reach(world: World, viewer: Client) -> None:
    text = viewer.get("/").text
    assert "Start reviewing" not in text
    assert 'href="/audit/"' not in text
    assert 'href="/review/"' not in text


def test_the_audit_list_is_narrowed_and_paged(
    world: World, as_role: Callable[[Role], Client]
) -> None:
    client = as_role(Role.OPERATOR)
    Event.objects.bulk_create(
        Event(kind="note.small", text=f"n{i}", actor=world.operator) for i in range(120)
    )
    first = client.get("/audit/?kind=note&actor=olga")
    assert len(first.context["events"]) == 100
    second = client.get(f"/audit/?kind=note&actor=olga&before={first.context['before']}")
    assert len(second.context["events"]) == 20
    assert client.get("/audit/?actor=nobody").context["events"] == []
