"""The report of an import: its funnel, its findings by severity, its refusals."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from evolution.found import FoundBundle, Refusal
from tests.webapp import builders
from webapp.lifecycle import VerificationStatus
from webapp.models import Environment, GateRecord, Import, ImportEntry
from webapp.selectors.findings import Severity, findings
from webapp.selectors.imports import funnel_of, verdicts_of
from webapp.services import imports


def make_import() -> Import:
    """Four places: two verified seeds, one invalid one, a copy, one not verified, two refusals."""
    batch = imports.open_import(["tasks/"], tags=["foreign"])
    bundles = [builders.seed_bundle(index) for index in (0, 1, 2, 0, 3)]
    found = [FoundBundle(f"tasks/{n}", f"t/{n}", bundle) for n, bundle in enumerate(bundles)]
    refused = [
        Refusal("tasks/bad", "task.toml", "not valid TOML"),
        Refusal("tasks.zip", "", "no environment found in here"),
    ]
    for position, one in enumerate([*found, *refused]):
        imports.take_found(batch, position, one)
    imports.close_import(batch)
    verdicts = (VerificationStatus.VALID, VerificationStatus.VALID, VerificationStatus.INVALID)
    for seed, verdict in zip(Environment.objects.order_by("pk"), verdicts, strict=False):
        Environment.objects.filter(pk=seed.pk).update(verification=verdict)
        seed.refresh_from_db()
        builders.add_verification(seed)
    return batch


def answer(environment: Environment, of: str, **fields: object) -> None:
    """Give a gate of the environment's verdict another answer."""
    rows = GateRecord.objects.filter(verification=environment.current_verification, gate=of)
    assert rows.update(**fields) == 1


@pytest.fixture
def batch(db: None) -> Import:
    return make_import()


def test_the_funnel_adds_up_and_every_number_leads_to_its_environments(
    batch: Import, viewer: Client
) -> None:
    stages = {stage.label: stage for stage in funnel_of(batch)}
    assert [stage.count for stage in stages.values()] == [7, 5, 4, 3, 2]
    assert stages["well-formed"].lost == "2 refused"
    assert stages["seeds"].lost == "1 the same as another"
    assert stages["runnable"].lost == "1 not verified yet"
    assert stages["verified"].lost == "1 invalid"
    for label in ("seeds", "runnable", "verified"):
        page = viewer.get(f"/environments/?{stages[label].query}")
        assert page.context["page"].count == stages[label].count, label
        assert f"import {batch.pk}" in page.text
    seed = Environment.objects.earliest("pk")
    answer(seed, "build", status="failed")
    Environment.objects.filter(pk=seed.pk).update(verification=VerificationStatus.INVALID)
    stages = {stage.label: stage for stage in funnel_of(batch)}
    assert (stages["runnable"].count, stages["verified"].count) == (2, 1)
    assert stages["runnable"].lost == "1 do not build, 1 not verified yet"


def test_findings_are_sorted_by_how_grave_they_are(batch: Import, viewer: Client) -> None:
    first, second, invalid = Environment.objects.order_by("pk")[:3]
    answer(first, "headroom", status="failed", is_blocking=False)
    answer(first, "mutants", status="failed", is_blocking=False)
    answer(second, "oracle", figures={"runs": 20, "failures": 1})
    answer(second, "demands", status="inconclusive")
    answer(second, "nop", status="failed", is_blocking=False)
    answer(second, "format", gate="exploits", status="failed", is_blocking=False)
    found = findings(verdicts_of(batch))
    assert [(one.severity, one.record.gate) for one in found] == [
        (Severity.BLOCKING, "mutants"),
        (Severity.CHEATABLE, "exploits"),
        (Severity.NO_SIGNAL, "nop"),
        (Severity.FLAKY, "headroom"),
        (Severity.FLAKY, "oracle"),
        (Severity.STRICTNESS, "mutants"),
        (Severity.UNANSWERED, "demands"),
    ]
    assert found[0].environment == invalid
    page = viewer.get(f"/imports/{batch.pk}/")
    assert page.context["total"] == 7
    assert "leak or exploit" in page.text
    flaky = viewer.get(f"/imports/{batch.pk}/?severity={Severity.FLAKY.value}")
    assert {one.record.gate for one in flaky.context["found"]} == {"headroom", "oracle"}
    assert len(viewer.get(f"/imports/{batch.pk}/?severity=x").context["found"]) == 7
    assert f"/environments/{second.pk}/gates/?v=1#gate-exploits" in page.text


def test_an_earlier_verdict_is_no_finding_any_more(batch: Import) -> None:
    invalid = Environment.objects.order_by("pk")[2]
    assert len(findings(verdicts_of(batch))) == 1
    Environment.objects.filter(pk=invalid.pk).update(verification=VerificationStatus.VALID)
    invalid.refresh_from_db()
    builders.add_verification(invalid)
    assert findings(verdicts_of(batch)) == []


def test_refusals_are_listed_with_file_and_reason(batch: Import, viewer: Client) -> None:
    page = viewer.get(f"/imports/{batch.pk}/")
    for told in ("tasks/bad", "task.toml", "not valid TOML", "no environment found in here"):
        assert told in page.text
    rows = viewer.get("/imports/").context["imports"]
    assert [(row.found, row.new, row.refused) for row in rows] == [(7, 4, 2)]
    assert viewer.get("/imports/999/").status_code == 404


def test_an_import_that_broke_off_says_so(db: None, viewer: Client) -> None:
    batch = imports.open_import(["tasks/"])
    assert "not finished" in viewer.get(f"/imports/{batch.pk}/").text
    assert [stage.count for stage in funnel_of(batch)] == [0, 0, 0, 0, 0]


def test_an_entry_is_a_seed_or_a_refusal_and_counts_once(batch: Import) -> None:
    seed = Environment.objects.earliest("pk")
    for fields in (
        {"outcome": "refused", "environment": seed, "position": 90},
        {"outcome": "imported", "environment": None, "position": 91},
        {"outcome": "lost", "environment": None, "position": 92},
        {"outcome": "refused", "environment": None, "position": 0},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            ImportEntry.objects.create(batch=batch, origin="x", **fields)
