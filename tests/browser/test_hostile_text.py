"""Hostile text in every field that anybody can fill: nothing runs, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from sandbox.contracts import SandboxFile
from tests.browser.conftest import Site, all_pages
from tests.webapp import builders
from tests.webapp.conversations import add_measured, tell_story
from webapp.models import (
    Environment,
    Event,
    EvolutionRun,
    GateRecord,
    Import,
    ImportEntry,
    Lineage,
    ModelCall,
    Review,
    Role,
    User,
    Verification,
)
from webapp.services import datasets, reviews
from webapp.store import load_bundle, save_bundle

pytestmark = pytest.mark.browser
PAYLOADS = (
    "<script>window.pwned=1</script>",
    "\"><img src=x onerror='window.pwned=1'>",
    "'><svg onload=window.pwned=1>",
    "</textarea></title></style></script><script>window.pwned=1</script>",
    "[x](javascript:window.pwned=1) <a href='javascript:window.pwned=1'>x</a>",
    "{{ 7|add:'7' }}{% debug %} ${window.pwned=1}",
)
ALL = "\n".join(PAYLOADS)
FOUND = """() => [
  window.pwned === undefined ? '' : 'code ran',
  ...[...document.querySelectorAll('img, iframe, object, embed, script:not([src])')]
    .map(e => 'element ' + e.outerHTML.slice(0, 80)),
  ...[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
    .filter(a => a.name.startsWith('on') || /^\\s*javascript:/i.test(a.value) && a.name === 'href')
    .map(a => 'attribute ' + a.name),
].filter(Boolean)"""


@pytest.fixture
def hostile(site: Site) -> Site:
    """Every text of the site is hostile now."""
    shown = site.waiting[1]
    seed = site.seed
    Lineage.objects.filter(pk=seed.lineage_id).update(
        name=ALL[:190], licence=ALL[:190], origin=ALL[:490], tags=list(PAYLOADS)
    )
    pair = {"scenario": ALL, "skill": ALL}
    demands = [dict(demand) for demand in shown.demands]
    for demand in demands:
        demand.update(id=ALL, title=ALL, why=ALL, operator=ALL, effect=ALL, checks=list(PAYLOADS))
    bundle = load_bundle(shown).with_files(
        [
            SandboxFile("environment/<img src=x onerror=alert(1)>.html", ALL.encode()),
            SandboxFile(
                "environment/page.svg", f"<svg onload='window.pwned=1'>{ALL}</svg>".encode()
            ),
            SandboxFile("instruction.md", ALL.encode()),
            SandboxFile("solution/report.py", f"x = '''{ALL}'''\n".encode()),
        ]
    )
    Environment.objects.filter(pk__in=[shown.pk, seed.pk]).update(
        name=ALL[:190], title=ALL[:290], why=ALL, instruction=ALL, failure=ALL[:490]
    )
    Environment.objects.filter(pk=shown.pk).update(
        sequence=[pair, pair], demands=demands, operator=PAYLOADS[1], manifest=save_bundle(bundle)
    )
    shown.refresh_from_db()
    builders.add_verification(shown, text=ALL)
    Verification.objects.filter(environment=shown).update(error=ALL, backend=PAYLOADS[0])
    GateRecord.objects.filter(verification__environment=shown, gate="mutants").update(
        evidence=[
            {"label": f"check {ALL}", "result": "notices none"},
            {"label": f"check {PAYLOADS[0]}", "result": "notices 1, 1 of them alone"},
            {"label": f"noticed: {ALL}", "result": f"by {PAYLOADS[0]}", "files": [ALL]},
            {"label": f"not noticed: {ALL}", "result": ALL, "last_lines": ALL},
        ],
        figures={PAYLOADS[0]: 1.0},
    )
    GateRecord.objects.filter(verification__environment=seed).update(reason=ALL)
    Import.objects.update(sources=list(PAYLOADS), tags=list(PAYLOADS))
    ImportEntry.objects.update(origin=ALL, file=ALL, reason=ALL, notes=list(PAYLOADS))
    EvolutionRun.objects.filter(pk=site.run.pk).update(name=ALL[:190], error=ALL)
    Event.objects.create(kind=PAYLOADS[0], text=ALL, run=site.run, environment=shown)
    step = builders.add_step(site.run, shown, 7)
    tell_story(site.run, step, shown, ALL)
    ModelCall.objects.filter(step=step).update(model=ALL[:190], place=ALL, reason=ALL)
    add_measured(shown, ALL)
    mallory = builders.make_user(Role.REVIEWER, PAYLOADS[0])
    reviews.decide(shown.pk, mallory, "rejected", shown.digest, reasons=["tests.weak"], comment=ALL)
    approved = Environment.objects.filter(review="approved").values_list("pk", flat=True)
    datasets.freeze(f"Pilot {PAYLOADS[0]}"[:99], list(approved), site.reviewer, notes=ALL)
    User.objects.filter(pk=site.reviewer.pk).update(username=PAYLOADS[2])
    return site


def test_nothing_runs_on_any_page(hostile: Site, visit: Callable[[str], Page]) -> None:
    found: dict[str, list[str]] = {}
    environment = f"/environments/{hostile.waiting[1].pk}"
    trial = hostile.waiting[1].verifications.latest("pk").trials.latest("pk")
    extra = {
        "hostile file": f"{environment}/files/?path=environment/page.svg",
        "hostile trial": f"/trials/{trial.pk}/",
        "hostile making": f"{environment}/making/",
        "hostile focus": f"/review/{hostile.waiting[1].pk}/",
        "hostile query": "/environments/?text=%22%3E%3Cscript%3Ewindow.pwned%3D1%3C/script%3E",
        "hostile audit": "/audit/?kind=%22%3E%3Cimg+src%3Dx+onerror%3Dwindow.pwned%3D1%3E",
    }
    shown = 0
    for name, path in {**all_pages(hostile), **extra}.items():
        page = visit(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        if problems := page.evaluate(FOUND):
            found[name] = problems
        shown += "window.pwned=1" in (page.text_content("body") or "")
    assert found == {}
    assert shown >= 12, "the payloads must really be on the pages"
    assert Review.objects.filter(comment=ALL).exists()


def test_hostile_files_are_saved_and_never_shown(
    hostile: Site, visit: Callable[[str], Page]
) -> None:
    page = visit("/")
    base = f"{hostile.url}/environments/{hostile.waiting[1].pk}/files/raw/?path="
    for path in ("environment/page.svg", "instruction.md", "solution/report.py"):
        response = page.request.get(base + path)
        assert response.headers["content-disposition"].startswith("attachment")
        assert response.headers["content-type"] == "application/octet-stream"
        assert response.headers["x-content-type-options"] == "nosniff"
