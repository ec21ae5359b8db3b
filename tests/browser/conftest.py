"""A live server with stored data, and browsers that are signed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import BrowserContext, Page

from evolution.found import FoundBundle, Refusal
from evolution.task_config import Problem, Severity
from tests.webapp import builders
from tests.webapp.conversations import add_measured, tell_story
from webapp.models import (
    Environment,
    EvolutionRun,
    GateRecord,
    Import,
    MeasuredTrial,
    ModelCall,
    Role,
    User,
)
from webapp.services import datasets, imports, reviews

SCREENSHOTS = Path(__file__).resolve().parents[2] / "artifacts" / "screenshots"


@pytest.fixture(scope="session", autouse=True)
def _loop_in_the_thread_of_the_tests() -> Iterator[None]:
    """Playwright leaves its loop in this thread; the database is set up and emptied beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield


@dataclass(frozen=True)
class Site:
    """The address of the server and what is stored there."""

    url: str
    reviewer: User
    run: EvolutionRun
    seed: Environment
    waiting: tuple[Environment, ...]


@pytest.fixture
def site(live_server: Any, transactional_db: None) -> Site:
    """One lineage with three environments that wait, an invalid one, a frozen dataset."""
    reviewer = builders.make_user(Role.ADMIN, "rita")
    seed = builders.make_seed(0)
    run = builders.make_run([seed.lineage], reviewer)
    builders.add_verification(seed)
    made = []
    for number in range(4):
        child = builders.make_child(made[-1] if number == 2 else seed, 2 * number, run=run)
        builders.add_verification(child)
        builders.add_scores(child)
        made.append(child)
    invalid = builders.make_child(seed, 5, run=run, verification="invalid")
    builders.add_verification(invalid)
    builders.add_step(run, seed, 0)
    _import_again(seed)
    step = builders.add_step(run, made[-1].parent or seed, 1, child=made[-1])
    tell_story(run, step, made[-1])
    add_measured(seed)
    reviews.decide(made[0].pk, reviewer, "approved", made[0].digest)
    datasets.freeze("Pilot", [made[0].pk], reviewer, "For the first training run.")
    return Site(live_server.url, reviewer, run, seed, tuple(made[1:]))


def _import_again(seed: Environment) -> None:
    """An import that found the seed once more, and something that it refused; with a finding."""
    batch = imports.open_import(["tasks/", "more.zip"], tags=["foreign"])
    note = Problem("task.toml", "an unknown key: colour", Severity.WARNING)
    again = FoundBundle("tasks/nginx", seed.name, builders.seed_bundle(0), (note,))
    imports.take_found(batch, 0, again)
    imports.take_found(batch, 1, Refusal("tasks/bad", "task.toml", "not valid TOML"))
    imports.close_import(batch)
    GateRecord.objects.filter(verification__environment=seed, gate="headroom").update(
        gate="exploits", status="failed", is_blocking=False, reason="rewarded: a planted file"
    )


def sign_in(context: BrowserContext, site: Site, user: User) -> None:
    """Give a browser the session of a person."""
    client = Client()
    client.force_login(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": cookie.value, "url": site.url}]
    )


@pytest.fixture
def visit(context: BrowserContext, page: Page, site: Site) -> Callable[[str], Page]:
    """Open an address of the site, signed in as an admin who reviews."""
    sign_in(context, site, site.reviewer)

    def go(path: str) -> Page:
        page.goto(site.url + path)
        return page

    return go


def all_pages(site: Site) -> dict[str, str]:
    """Every page that shows something, by name."""
    environment = f"/environments/{site.waiting[1].pk}"
    trial = site.waiting[0].verifications.get().trials.order_by("pk")[0]
    return {
        "overview": "/",
        "environments": "/environments/",
        "environments-none": "/environments/?text=nothing+like+it",
        "environment": f"{environment}/",
        "environment-words": f"{environment}/?words=1",
        "environment-seed": f"/environments/{site.seed.pk}/",
        "files": f"{environment}/files/?path=solution/report.py",
        "diff": f"{environment}/diff/",
        "diff-split": f"{environment}/diff/?view=split&against=root",
        "gates": f"{environment}/gates/",
        "gates-cheated": f"/environments/{site.seed.pk}/gates/",
        "gates-alone": f"{environment}/gates/?beside=nothing",
        "trials": f"{environment}/trials/",
        "lineage-tab": f"{environment}/lineage/",
        "reviews": f"{environment}/reviews/",
        "history": f"{environment}/history/",
        "making": f"/environments/{site.waiting[-1].pk}/making/",
        "making-none": f"/environments/{site.waiting[-1].pk}/making/?q=nothing+like+it",
        "call": f"/calls/{ModelCall.objects.filter(outcome='timeout').latest('pk').pk}/",
        "run-calls": f"/runs/{site.run.pk}/calls/",
        "measured": f"/measured/{MeasuredTrial.objects.latest('pk').pk}/",
        "models": "/models/",
        "trial": f"/trials/{trial.pk}/",
        "imports": "/imports/",
        "import": f"/imports/{Import.objects.latest('pk').pk}/",
        "lineages": "/lineage/",
        "lineage": f"/lineage/{site.seed.lineage_id}/?color=direction",
        "review-queue": "/review/",
        "review-focus": f"/review/{site.waiting[0].pk}/",
        "runs": "/runs/",
        "run": f"/runs/{site.run.pk}/",
        "run-new": "/runs/new/",
        "run-events": f"/runs/{site.run.pk}/events/",
        "datasets": "/datasets/",
        "dataset": "/datasets/pilot/",
        "dataset-version": "/datasets/pilot/1/",
        "dataset-freeze": "/datasets/freeze/",
        "audit": "/audit/",
        "missing": "/environments/999999/",
    }
