"""The queue and focus mode: claim, decide, undo, skip."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp import builders
from tests.webapp.views.conftest import HTMX, World
from webapp.models import Environment, Review, ReviewLease, Role
from webapp.services import datasets, reviews


def decide(client: Client, environment: Environment, verdict: str, **more: object):
    data = {"verdict": verdict, "digest": environment.digest, **more}
    return client.post(f"/review/{environment.pk}/decide/", data, headers=HTMX)


def status_of(environment: Environment) -> str:
    return Environment.objects.values_list("review", flat=True).get(pk=environment.pk)


def test_start_reviewing_holds_the_oldest_and_opens_it(world: World, reviewer: Client) -> None:
    response = reviewer.post("/review/next")
    assert response.url == f"/review/{world.child.pk}/"
    assert ReviewLease.objects.get().environment_id == world.child.pk


def test_two_reviewers_get_different_items(world: World, as_role: Callable[[Role], Client]) -> None:
    one, two = as_role(Role.REVIEWER), as_role(Role.REVIEWER)
    assert one.post("/review/next").url == f"/review/{world.child.pk}/"
    assert two.post("/review/next").url == f"/review/{world.grandchild.pk}/"
    assert as_role(Role.REVIEWER).post("/review/next").url == "/review/"


def test_a_decision_is_recorded_and_the_next_item_comes_at_once(
    world: World, reviewer: Client
) -> None:
    response = decide(reviewer, world.child, "approved")
    assert response.status_code == 200
    assert response.headers["HX-Push-Url"] == f"/review/{world.grandchild.pk}/"
    assert response.text.lstrip().startswith('<div id="focus"')
    assert f'value="{world.grandchild.digest}"' in response.text
    assert "Your last" in response.text
    assert status_of(world.child) == "approved"
    assert Review.objects.get().digest == world.child.digest


def test_without_javascript_the_form_leads_to_the_next_item(world: World, reviewer: Client) -> None:
    data = {"verdict": "approved", "digest": world.child.digest}
    response = reviewer.post(f"/review/{world.child.pk}/decide/", data)
    assert response.status_code == 302
    assert response.url == f"/review/{world.grandchild.pk}/"


@pytest.mark.parametrize("verdict", ["rejected", "changes_requested"])
def test_reject_and_changes_need_a_reason(verdict: str, world: World, reviewer: Client) -> None:
    response = decide(reviewer, world.child, verdict, comment="so much text")
    assert response.status_code == 422
    assert response.text.lstrip().startswith('<form id="decision"')
    assert "Choose at least one reason" in response.text
    assert "so much text" in response.text
    assert status_of(world.child) == "unreviewed"
    done = decide(reviewer, world.child, verdict, reasons=["tests.weak", "difficulty.easy"])
    assert done.status_code == 200
    assert Review.objects.get().reasons == ["tests.weak", "difficulty.easy"]
    assert status_of(world.child) == verdict


def test_the_other_reason_needs_words(world: World, reviewer: Client) -> None:
    assert decide(reviewer, world.child, "rejected", reasons=["other"]).status_code == 422
    said = decide(reviewer, world.child, "rejected", reasons=["other"], comment="smells")
    assert said.status_code == 200


def test_no_verdict_or_an_unknown_one_is_refused(world: World, reviewer: Client) -> None:
    assert decide(reviewer, world.child, "").status_code == 422
    assert decide(reviewer, world.child, "undone").status_code == 422
    assert decide(reviewer, world.child, "rejected", reasons=["nonsense"]).status_code == 422
    assert status_of(world.child) == "unreviewed"


def test_a_decision_on_another_digest_is_stale(world: World, reviewer: Client) -> None:
    response = decide(reviewer, world.child, "approved", digest="0" * 64)
    assert response.status_code == 409
    assert response.text.lstrip().startswith('<div id="focus"')
    assert "Nothing was recorded" in response.text
    assert f'value="{world.child.digest}"' in response.text
    assert not Review.objects.exists()


def test_the_second_of_two_decisions_is_stale_and_sees_the_first(
    world: World, as_role: Callable[[Role], Client]
) -> None:
    one, two = as_role(Role.REVIEWER), as_role(Role.REVIEWER)
    assert decide(one, world.child, "approved").status_code == 200
    late = decide(two, world.child, "rejected", reasons=["tests.weak"])
    assert late.status_code == 409
    assert "approved" in late.text
    assert Review.objects.count() == 1


def test_what_somebody_else_holds_cannot_be_decided(world: World, reviewer: Client) -> None:
    other = builders.make_user(Role.REVIEWER, "ben")
    reviews.claim(world.child.pk, other)
    assert "Held by ben" in reviewer.get(f"/review/{world.child.pk}/").text
    assert decide(reviewer, world.child, "approved").status_code == 409
    held = reviewer.post(f"/review/{world.child.pk}/claim/", headers=HTMX)
    assert held.status_code == 409
    assert "Held by ben" in held.text


def test_opening_claims_and_leaving_releases(world: World, reviewer: Client) -> None:
    claimed = reviewer.post(f"/review/{world.child.pk}/claim/", headers=HTMX)
    assert "Held by you" in claimed.text
    assert reviewer.post(f"/review/{world.child.pk}/release/").status_code == 204
    assert not ReviewLease.objects.exists()


def test_looking_changes_nothing(world: World, reviewer: Client) -> None:
    assert reviewer.get(f"/review/{world.child.pk}/").status_code == 200
    assert reviewer.get("/review/next").url == "/review/"
    assert not ReviewLease.objects.exists()


def test_undo_brings_the_item_back(world: World, reviewer: Client) -> None:
    decide(reviewer, world.child, "approved")
    review = Review.objects.get()
    response = reviewer.post(f"/review/undo/{review.pk}/", headers=HTMX)
    assert response.headers["HX-Push-Url"] == f"/review/{world.child.pk}/"
    assert status_of(world.child) == "unreviewed"
    assert "Your last" not in response.text
    again = reviewer.post(f"/review/undo/{review.pk}/", headers=HTMX)
    assert again.status_code == 409


def test_a_frozen_decision_cannot_be_undone(world: World, reviewer: Client) -> None:
    decide(reviewer, world.child, "approved")
    curator = builders.make_user(Role.CURATOR)
    datasets.freeze("Pilot", [world.child.pk], curator)
    response = reviewer.post(f"/review/undo/{Review.objects.get().pk}/", headers=HTMX)
    assert response.status_code == 409
    assert "frozen dataset" in response.text
    assert status_of(world.child) == "approved"


def test_skipping_is_personal_and_no_review(
    world: World, as_role: Callable[[Role], Client]
) -> None:
    one, two = as_role(Role.REVIEWER), as_role(Role.REVIEWER)
    response = one.post(f"/review/{world.child.pk}/skip/", headers=HTMX)
    assert response.headers["HX-Push-Url"] == f"/review/{world.grandchild.pk}/"
    assert two.post("/review/next").url == f"/review/{world.child.pk}/"
    assert not Review.objects.exists()
    assert one.post("/review/next", {"again": "1"}).status_code == 302
    assert one.session["skipped"] == []


def test_when_nothing_waits_it_says_so(world: World, reviewer: Client) -> None:
    decide(reviewer, world.child, "approved")
    last = decide(reviewer, world.grandchild, "rejected", reasons=["novelty.trivial"])
    assert last.headers["HX-Push-Url"] == "/review/"
    assert "Nothing waits" in last.text
    assert "Undo" in last.text


def test_an_invalid_environment_is_never_approved(world: World, reviewer: Client) -> None:
    response = decide(reviewer, world.invalid, "approved")
    assert response.status_code == 409
    assert status_of(world.invalid) == "unreviewed"
