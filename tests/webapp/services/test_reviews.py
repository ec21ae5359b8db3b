"""Decisions: on one digest, with reasons, undone by a row, one of many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from tests.webapp.rows import make_child, make_seed, make_user
from webapp.lifecycle import ReviewStatus
from webapp.models import Environment, Event, Review, ReviewLease, ReviewVerdict, Role, User
from webapp.services import datasets, reviews
from webapp.services.errors import InvalidInput, NotAllowed, ServiceError, StaleReview

pytestmark = pytest.mark.django_db


def test_an_approval_moves_the_environment_and_leaves_a_trail() -> None:
    child, ana = make_child(make_seed()), make_user("ana")
    reviews.decide(child.pk, ana, "approved", child.digest)
    child.refresh_from_db()
    assert child.review == ReviewStatus.APPROVED
    event = Event.objects.get(kind="environment.review")
    assert (event.actor, event.source, event.target) == (ana, "unreviewed", "approved")


def test_a_decision_on_another_digest_is_stale() -> None:
    child, ana = make_child(make_seed()), make_user("ana")
    with pytest.raises(StaleReview, match="another digest"):
        reviews.decide(child.pk, ana, "approved", "0" * 64)
    assert Review.objects.count() == 0


def test_an_invalid_environment_is_never_approved() -> None:
    child, ana = make_child(make_seed(), is_valid=False), make_user("ana")
    with pytest.raises(StaleReview, match="only valid"):
        reviews.decide(child.pk, ana, "approved", child.digest)


@pytest.mark.parametrize("verdict", ["rejected", "changes_requested"])
def test_a_refusal_needs_a_reason(verdict: str) -> None:
    child, ana = make_child(make_seed()), make_user("ana")
    with pytest.raises(InvalidInput, match="at least one reason"):
        reviews.decide(child.pk, ana, verdict, child.digest)
    with pytest.raises(InvalidInput, match="no such reason"):
        reviews.decide(child.pk, ana, verdict, child.digest, reasons=["nonsense"])
    with pytest.raises(InvalidInput, match="comment"):
        reviews.decide(child.pk, ana, verdict, child.digest, reasons=["other"])
    reviews.decide(child.pk, ana, verdict, child.digest, reasons=["tests.weak"])
    child.refresh_from_db()
    assert child.review == verdict


def test_viewers_do_not_decide() -> None:
    child, eve = make_child(make_seed()), make_user("eve", Role.VIEWER)
    with pytest.raises(NotAllowed):
        reviews.decide(child.pk, eve, "approved", child.digest)


def test_what_another_holds_cannot_be_decided() -> None:
    child, ana, ben = make_child(make_seed()), make_user("ana"), make_user("ben")
    reviews.claim(child.pk, ana)
    with pytest.raises(StaleReview, match="held by ana"):
        reviews.decide(child.pk, ben, "approved", child.digest)
    reviews.release(child.pk, ana)
    reviews.decide(child.pk, ben, "approved", child.digest)


def test_the_next_one_is_never_one_that_another_holds() -> None:
    seed = make_seed()
    first, second = make_child(seed), make_child(seed, "Count thrice.")
    ana, ben = make_user("ana"), make_user("ben")
    assert reviews.claim_next(ana) == first
    assert reviews.claim_next(ben) == second
    assert reviews.claim_next(ana, skip=[first.pk]) is None


def test_undo_takes_back_and_can_be_done_once() -> None:
    child, ana = make_child(make_seed()), make_user("ana")
    review = reviews.decide(child.pk, ana, "approved", child.digest)
    reviews.undo(review.pk, ana)
    child.refresh_from_db()
    assert child.review == ReviewStatus.UNREVIEWED
    assert list(Review.objects.values_list("verdict", flat=True).order_by("pk")) == [
        "approved",
        ReviewVerdict.UNDONE,
    ]
    with pytest.raises(StaleReview):
        reviews.undo(review.pk, ana)


def test_undo_is_for_the_reviewer_or_a_curator() -> None:
    child, ana, ben = make_child(make_seed()), make_user("ana"), make_user("ben")
    review = reviews.decide(child.pk, ana, "approved", child.digest)
    with pytest.raises(NotAllowed):
        reviews.undo(review.pk, ben)
    reviews.undo(review.pk, make_user("cleo", Role.CURATOR))


def test_what_a_frozen_version_contains_cannot_be_undone() -> None:
    child, ana = make_child(make_seed()), make_user("ana")
    review = reviews.decide(child.pk, ana, "approved", child.digest)
    datasets.freeze("Set one", [child.pk], make_user("cleo", Role.CURATOR))
    with pytest.raises(StaleReview, match="frozen"):
        reviews.undo(review.pk, ana)


@pytest.mark.django_db(transaction=True)
def test_of_many_decisions_at_once_one_stands() -> None:
    child = make_child(make_seed())
    people = [make_user(f"person-{number}") for number in range(20)]

    def decide(number: int) -> bool:
        user: User = people[number]
        verdict = "approved" if number % 2 else "rejected"
        try:
            reviews.decide(child.pk, user, verdict, child.digest, reasons=["tests.weak"])
        except StaleReview:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(20) as pool:
        won = list(pool.map(decide, range(20)))
    assert sum(won) == 1
    assert Review.objects.count() == 1
    assert Environment.objects.get(pk=child.pk).review == Review.objects.get().verdict
    assert Event.objects.filter(kind="environment.review").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_who_take_the_next_one_no_two_get_the_same() -> None:
    seed = make_seed()
    children = [make_child(seed, f"Count {number} times.") for number in range(4)]
    people = [make_user(f"person-{number}") for number in range(12)]

    def claim(user: User) -> int | None:
        try:
            found = reviews.claim_next(user)
            return found.pk if found else None
        finally:
            connection.close()

    with ThreadPoolExecutor(12) as pool:
        held = [pk for pk in pool.map(claim, people) if pk is not None]
    assert len(held) == len(set(held)) == ReviewLease.objects.count()
    assert set(held) <= {child.pk for child in children}


def test_only_approved_environments_are_frozen() -> None:
    child, cleo = make_child(make_seed()), make_user("cleo", Role.CURATOR)
    with pytest.raises(InvalidInput, match="not approved"):
        datasets.freeze("Set one", [child.pk], cleo)
    with pytest.raises(InvalidInput, match="at least one"):
        datasets.freeze("Set one", [], cleo)
    reviews.decide(child.pk, cleo, "approved", child.digest)
    first = datasets.freeze("Set one", [child.pk], cleo)
    second = datasets.freeze("Set one", [child.pk], cleo)
    assert (first.number, second.number) == (1, 2)
    assert first.digest == second.digest
    with pytest.raises(ServiceError):
        datasets.freeze("!!!", [child.pk], cleo)
