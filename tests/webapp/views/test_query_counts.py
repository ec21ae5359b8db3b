"""How many queries a page takes, held in `tests/webapp/query_counts.json`.

The world of this test is larger than that of the others, so that a query per row would show.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.webapp import builders
from tests.webapp.conversations import add_measured, tell_story
from tests.webapp.views.test_imports import make_import
from webapp.models import Environment, MeasuredTrial, ModelCall, Role, Trial, User
from webapp.selectors.queue import waiting_for_review
from webapp.services import datasets, reviews

STORED = Path(__file__).parent.parent / "query_counts.json"


def _pages() -> dict[str, str]:
    reviewer = User.objects.get(username="rita")
    operator = builders.make_user(Role.OPERATOR)
    seed = builders.make_seed(0)
    run = builders.make_run([seed.lineage], operator)
    node = seed
    for number in range(4):
        node = builders.make_child(node, number, run=run)
        builders.add_verification(node)
        builders.add_scores(node)
        builders.make_child(node, 8, run=run, verification="invalid")
    tell_story(run, builders.add_step(run, seed, 1, child=node), node)
    add_measured(seed)
    builders.grow_wide(builders.make_seed(1), 60)
    for environment in waiting_for_review().order_by("pk")[:2]:
        reviews.decide(environment.pk, reviewer, "approved", environment.digest)
    approved = Environment.objects.filter(review="approved").values_list("pk", flat=True)
    datasets.freeze("Pilot", list(approved), None)
    waiting = waiting_for_review().filter(run=run).latest("pk")
    base = f"/environments/{node.pk}"
    return {
        "dashboard": "/",
        "environments": "/environments/",
        "environments filtered": "/environments/?verification=valid&direction=skill&gate=mutants",
        "environment": f"{base}/",
        "environment words": f"{base}/?words=1",
        "environment files": f"{base}/files/",
        "environment diff": f"{base}/diff/",
        "environment gates": f"{base}/gates/",
        "environment making": f"{base}/making/",
        "environment trials": f"{base}/trials/",
        "environment lineage": f"{base}/lineage/",
        "environment reviews": f"{base}/reviews/",
        "environment history": f"{base}/history/",
        "trial": f"/trials/{Trial.objects.latest('pk').pk}/",
        "imports": "/imports/",
        "import": f"/imports/{make_import().pk}/",
        "lineages": "/lineage/",
        "lineage": f"/lineage/{seed.lineage_id}/",
        "review queue": "/review/",
        "review focus": f"/review/{waiting.pk}/",
        "runs": "/runs/",
        "run": f"/runs/{run.pk}/",
        "run live": f"/runs/{run.pk}/live/",
        "run calls": f"/runs/{run.pk}/calls/",
        "call": f"/calls/{ModelCall.objects.latest('pk').pk}/",
        "measured": f"/measured/{MeasuredTrial.objects.latest('pk').pk}/",
        "models": "/models/",
        "run events": f"/runs/{run.pk}/events/",
        "datasets": "/datasets/",
        "dataset version": "/datasets/pilot/1/",
        "dataset freeze": "/datasets/freeze/",
        "audit": "/audit/",
    }


def test_pages_take_the_stored_number_of_queries(
    db: None, as_role: Callable[[Role], Client]
) -> None:
    builders.make_user(Role.REVIEWER, "rita")
    client = as_role(Role.ADMIN)
    client.get("/")
    counts = {}
    for name, url in _pages().items():
        with CaptureQueriesContext(connection) as queries:
            assert client.get(url).status_code == 200, name
        counts[name] = len(queries)
    stored = json.loads(STORED.read_text())
    assert counts == stored, f"if these are right, store them:\n{json.dumps(counts, indent=2)}"
    assert max(counts.values()) <= 30
