"""The reviewer's whole work, by keyboard, in a real browser."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from webapp.models import Environment, Review, ReviewLease

pytestmark = pytest.mark.browser


def wait_until_seen(page: Page) -> None:
    """Keys act on an item only after it has been on the screen for a moment."""
    expect(page.locator("#focus")).to_have_attribute("data-ready", "")


def decisions() -> list[tuple[int, str]]:
    rows = Review.objects.exclude(environment__memberships__isnull=False).order_by("pk")
    return list(rows.values_list("environment_id", "verdict"))


def test_approve_reject_and_undo_by_keyboard(site: Site, visit: Callable[[str], Page]) -> None:
    first, second, third = site.waiting
    page = visit(f"/review/{first.pk}/")
    expect(page.locator("#lease")).to_contain_text("Held by you")
    wait_until_seen(page)
    page.keyboard.press("a")
    expect(page.locator("input[value=approved]")).to_be_checked()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#focus")).to_have_attribute("data-environment", str(second.pk))
    expect(page).to_have_url(f"{site.url}/review/{second.pk}/")
    assert decisions() == [(first.pk, "approved")]

    wait_until_seen(page)
    page.keyboard.press("r")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("at least one reason")
    wait_until_seen(page)
    page.keyboard.press("2")
    page.keyboard.press("m")
    page.keyboard.type("a letter r in a comment decides nothing")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#focus")).to_have_attribute("data-environment", str(third.pk))
    rejected = Review.objects.latest("pk")
    assert (rejected.verdict, rejected.reasons) == ("rejected", ["instruction.unstated"])
    assert rejected.comment == "a letter r in a comment decides nothing"

    wait_until_seen(page)
    page.keyboard.press("u")
    expect(page.locator("#focus")).to_have_attribute("data-environment", str(second.pk))
    assert Environment.objects.get(pk=second.pk).review == "unreviewed"

    wait_until_seen(page)
    page.keyboard.press("s")
    expect(page.locator("#focus")).not_to_have_attribute("data-environment", str(second.pk))
    assert Environment.objects.get(pk=second.pk).review == "unreviewed"


def test_typing_ahead_never_decides_an_item_that_was_not_seen(
    site: Site, visit: Callable[[str], Page]
) -> None:
    first, second, _ = site.waiting
    page = visit(f"/review/{first.pk}/")
    expect(page.locator("#lease")).to_contain_text("Held by you")
    wait_until_seen(page)
    for _ in range(6):
        page.keyboard.press("a")
        page.keyboard.press("Control+Enter")
    expect(page.locator("#focus")).to_have_attribute("data-environment", str(second.pk))
    wait_until_seen(page)
    assert decisions() == [(first.pk, "approved")]
    assert page.locator("#decision input:checked").count() == 0


def test_a_decision_that_came_too_late_shows_the_item_as_it_is_now(
    site: Site, visit: Callable[[str], Page]
) -> None:
    first = site.waiting[0]
    page = visit(f"/review/{first.pk}/")
    expect(page.locator("#lease")).to_contain_text("Held by you")
    ReviewLease.objects.all().delete()
    Environment.objects.filter(pk=first.pk).update(review="rejected")
    page.locator("label", has_text="Approve").click()
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was recorded")
    expect(page.locator("#decision")).to_contain_text("It has a decision already")
    assert decisions() == []


def test_leaving_gives_the_item_back(site: Site, visit: Callable[[str], Page]) -> None:
    page = visit(f"/review/{site.waiting[0].pk}/")
    expect(page.locator("#lease")).to_contain_text("Held by you")
    page.goto(f"{site.url}/runs/")
    page.wait_for_timeout(300)
    assert not ReviewLease.objects.exists()


def test_letter_keys_can_be_switched_off(site: Site, visit: Callable[[str], Page]) -> None:
    page = visit(f"/review/{site.waiting[0].pk}/")
    wait_until_seen(page)
    page.keyboard.press("?")
    page.get_by_label("Switch single-letter keys off").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("a")
    assert page.locator("#decision input:checked").count() == 0


def test_everything_can_be_done_without_javascript(
    browser: object, site: Site, request: pytest.FixtureRequest
) -> None:
    from playwright.sync_api import Browser

    from tests.browser.conftest import sign_in

    assert isinstance(browser, Browser)
    context = browser.new_context(java_script_enabled=False)
    request.addfinalizer(context.close)
    sign_in(context, site, site.reviewer)
    page = context.new_page()
    first, second, _ = site.waiting
    page.goto(f"{site.url}/environments/{first.pk}/")
    page.get_by_role("link", name="Words that changed").click()
    expect(page.locator("ins").first).to_be_visible()
    page.goto(f"{site.url}/review/{first.pk}/")
    page.locator("label", has_text="Approve").click()
    page.get_by_role("button", name="Decide").click()
    expect(page).to_have_url(f"{site.url}/review/{second.pk}/")
    page.get_by_role("button", name="Undo").click()
    expect(page).to_have_url(f"{site.url}/review/{first.pk}/")
    assert Environment.objects.get(pk=first.pk).review == "unreviewed"


def test_approved_work_is_frozen_and_downloaded(site: Site, visit: Callable[[str], Page]) -> None:
    page = visit("/datasets/")
    page.get_by_role("link", name="Freeze a version").click()
    page.get_by_label("Name").fill("Second pick")
    page.get_by_role("button", name="Freeze").click()
    expect(page).to_have_url(f"{site.url}/datasets/second-pick/1/")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download .tar.gz").click()
    path = waiting.value.path()
    assert waiting.value.suggested_filename == "second-pick-v1.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes()))) as tar:
        names = tar.getnames()
    assert sum(name.endswith("/instruction.md") for name in names) == 1
