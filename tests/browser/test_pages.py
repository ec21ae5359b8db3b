"""Every page in a real browser: accessible, in bounds, quiet, and photographed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from evolution.contracts import GateResult, GateStatus
from tests.browser.conftest import SCREENSHOTS, Site, all_pages, sign_in
from webapp.adapters.errands import work_on_errand
from webapp.models import Errand, Event, Verification
from webapp.services.errands import Done
from webapp.services.verifications import record_gate

pytestmark = pytest.mark.browser
AXE = (Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
UNFOLD = "document.querySelectorAll('.gate, .gate details').forEach(one => { one.open = true; })"
OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_breaks_a_rule_of_accessibility_or_its_own_policy(
    theme: str, browser: Browser, site: Site, request: pytest.FixtureRequest
) -> None:
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": 1280, "height": 860},
    )
    request.addfinalizer(context.close)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    broken: dict[str, list[str]] = {}
    for name, path in {"sign-in": "/signin/", **all_pages(site)}.items():
        if name == "overview":
            sign_in(context, site, site.reviewer)
        page.goto(site.url + path)
        page.evaluate(UNFOLD if "gates" in name else "null")
        page.evaluate(AXE)
        found = page.evaluate(
            "rules => axe.run(document, {runOnly: rules}).then(r => r.violations.map("
            "v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary)))",
            RULES,
        )
        expected = ["Failed to load resource: the server responded with a status of 404"]
        noise = [line for line in said if not (name == "missing" and expected[0] in line)]
        if found or noise:
            broken[name] = [*found, *noise]
        said.clear()
        page.screenshot(path=SCREENSHOTS / f"{name}-1280-{theme}.png", full_page=True)
    assert broken == {}


def test_no_page_is_wider_than_a_phone(
    browser: Browser, site: Site, request: pytest.FixtureRequest
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    request.addfinalizer(context.close)
    sign_in(context, site, site.reviewer)
    page = context.new_page()
    for name, path in all_pages(site).items():
        page.goto(site.url + path)
        page.evaluate(UNFOLD if "gates" in name else "null")
        assert page.evaluate(OVERFLOW) <= 0, name
        page.screenshot(path=SCREENSHOTS / f"{name}-390-light.png", full_page=True)


def test_a_run_shows_what_happens_within_seconds_without_moving_the_log(
    site: Site, visit: Callable[[str], Page]
) -> None:
    page = visit(f"/runs/{site.run.pk}/")
    before = page.locator("#log > li").count()
    Event.objects.create(kind="step.planned", text="a plan was accepted", run=site.run)
    fresh = page.get_by_role("link", name="1 new event: show")
    expect(fresh).to_be_visible(timeout=5_000)
    assert page.locator("#log > li").count() == before
    fresh.click()
    expect(page.locator("#log")).to_contain_text("a plan was accepted")
    Event.objects.create(kind="step.planned", text="another one", run=site.run)
    expect(page.get_by_role("link", name="1 new event: show")).to_be_visible(timeout=5_000)


def test_the_tree_unfolds_and_the_panel_follows(site: Site, visit: Callable[[str], Page]) -> None:
    page = visit(f"/lineage/{site.seed.lineage_id}/")
    row = page.locator(f".tree a[data-node='{site.waiting[0].pk}']")
    row.click()
    expect(page.locator("#panel h2")).to_contain_text(site.waiting[0].title)
    assert f"focus={site.waiting[0].pk}" in page.url
    row.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_contain_text(site.seed.title)
    page.locator(f"svg a[data-node='{site.waiting[1].pk}']").click()
    expect(page.locator("#panel h2")).to_contain_text(site.waiting[1].title)
    page.locator(f".tree a[data-node='{site.waiting[0].pk}']").focus()
    page.keyboard.press("d")
    page.wait_for_url(f"**/environments/{site.waiting[0].pk}/diff/")


def test_a_gate_is_asked_again_and_the_page_follows_it(
    site: Site, visit: Callable[[str], Page]
) -> None:
    shown = site.waiting[1]
    page = visit(f"/environments/{shown.pk}/gates/#gate-mutants")
    expect(page.locator("#gate-mutants")).to_be_visible()
    page.locator("#gate-mutants").get_by_role("button", name="Ask this gate again").click()
    expect(page.locator("#progress")).to_contain_text("0 of 13 gates have answered")
    newest = shown.verifications.latest("number")
    record_gate(newest, 0, GateResult("format", 2, GateStatus.PASSED, "as it should be"))
    expect(page.locator("#progress")).to_contain_text("1 of 13", timeout=6_000)
    Verification.objects.filter(pk=newest.pk).update(status="cancelled")
    expect(page.locator("#progress")).to_contain_text("has ended", timeout=6_000)


def test_the_verifier_is_hardened_by_a_button_and_the_page_follows_it(
    site: Site, visit: Callable[[str], Page]
) -> None:
    page = visit(f"/environments/{site.seed.pk}/gates/")
    page.get_by_role("button", name="Harden the verifier").click()
    panel = page.locator("#errands")
    expect(panel).to_contain_text("the strictest first")
    expect(panel.get_by_role("button")).to_have_count(0)
    said = "its tests are in no form that can be changed"
    assert work_on_errand(Errand.objects.get().pk, lambda _: Done(said), "tests")
    expect(panel).to_contain_text(f"Nothing can be hardened: {said}", timeout=8_000)
    expect(panel.get_by_role("button", name="Try again")).to_be_visible()


def test_searching_narrows_the_table_as_one_types(site: Site, visit: Callable[[str], Page]) -> None:
    page = visit("/environments/")
    page.keyboard.press("/")
    page.keyboard.type("ceiling")
    expect(page.locator("#results tbody tr")).to_have_count(0)
    page.keyboard.press("Control+a")
    page.keyboard.type("archive must stay")
    expect(page.locator("#results tbody tr")).to_have_count(1)
    assert "text=archive" in page.url


def test_what_is_typed_before_the_page_is_ready_is_searched_for_too(
    page: Page, visit: Callable[[str], Page]
) -> None:
    page.add_init_script(
        "const later = window.setTimeout;"  # htmx begins in one that names no time
        " window.setTimeout = (act, after = 1500, ...more) => later(act, after, ...more);"
    )
    visit("/environments/")
    page.keyboard.press("/")
    page.keyboard.type("ceiling")
    assert page.locator("#search[data-htmx-powered], form[data-htmx-powered]").count() == 0
    expect(page.locator("#results tbody tr")).to_have_count(0)
    assert "text=ceiling" in page.url


def test_the_last_letter_typed_counts_however_slowly_the_server_answers(
    site: Site, visit: Callable[[str], Page]
) -> None:
    page = visit("/environments/")
    page.evaluate(
        "() => { const ask = window.fetch; window.fetch = async (...asked) => {"
        " await new Promise(done => setTimeout(done, 1500)); return ask(...asked); }; }"
    )
    page.keyboard.press("/")
    page.keyboard.type("ceil", delay=450)  # each letter asks while the first one's answer is due
    expect(page.locator("#results tbody tr")).to_have_count(0)
    assert page.url.endswith("/environments/?text=ceil&gate=")
    expect(page.locator("#trouble")).to_be_hidden()


def test_keys_lead_through_the_tables_and_pages(site: Site, visit: Callable[[str], Page]) -> None:
    page = visit("/environments/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/environments/*/")
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.wait_for_url("**/runs/")
    page.keyboard.press("n")
    page.wait_for_url("**/runs/new/")
    page.goto(f"{site.url}/review/")
    page.keyboard.press("n")
    page.wait_for_url("**/review/*/")
    page.goto(f"{site.url}/environments/{site.waiting[1].pk}/diff/")
    page.keyboard.press("t")
    page.wait_for_url("**view=split")
