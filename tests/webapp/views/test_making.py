"""The story of a making, the calls of a run, spend and budget, and the page of the models."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client, override_settings

from evolution.llm.calls import CallOutcome, Role, Usage
from tests.webapp import builders
from tests.webapp.conversations import make_call, says, tell_story, user
from tests.webapp.views.conftest import World
from webapp.lifecycle import PauseReason, RunStatus
from webapp.models import Blob, EvolutionRun, ModelCall
from webapp.models import Role as Rank
from webapp.services.calls import Place, store_call
from webapp.services.events import append_event


@pytest.fixture
def told(world: World) -> World:
    """The child of the world was made by models."""
    EvolutionRun.objects.filter(pk=world.run.pk).update(author="llm", budget_usd=0.5)
    world.run.refresh_from_db()
    step = builders.add_step(world.run, world.seed, 1, child=world.child)
    tell_story(world.run, step, world.child, "needle & <b>thread</b>")
    append_event("refused", "skill: no operator applies", run=world.run, step=step)
    return world


def test_the_story_names_who_said_what_and_every_fault(told: World, viewer: Client) -> None:
    page = viewer.get(f"/environments/{told.child.pk}/making/")
    roles = [e.call.row.role for e in page.context["entries"] if e.call]
    assert roles == ["proposer", *["plan_reviewer"] * 2, *["modifier"] * 3]
    for words in (
        "Insert a sealed second order",
        "calls run",
        "result run",
        "429, asked to wait 3 s",
        "rate limited",
        "timed out",
        "no operator applies",
    ):
        assert words in page.text, words
    assert "<b>thread</b>" not in page.text
    total = page.context["total"]
    assert (total.calls, total.faults, total.is_estimated) == (6, 2, True)
    assert total.usd == pytest.approx(4 * 0.0042 + 0.0061)


def test_each_part_is_told_once_however_often_it_was_sent(told: World, viewer: Client) -> None:
    page = viewer.get(f"/environments/{told.child.pk}/making/")
    modifier = [
        e.call for e in page.context["entries"] if e.call and "modify/1/2" in e.call.row.place
    ]
    assert [[one.label for one in call.asked] for call in modifier] == [["result run"], []]


def test_a_search_finds_what_was_said_and_nothing_else(told: World, viewer: Client) -> None:
    def found(words: str) -> int:
        entries = viewer.get(f"/environments/{told.child.pk}/making/", {"q": words}).context[
            "entries"
        ]
        assert all(entry.call for entry in entries)
        return len(entries)

    assert found("sealed second") == 2
    assert found('"sealed second order"') == 1
    assert found("accepted") == 1
    assert found("nothing like it") == 0
    assert found("\0 ' \" & | ! ( : *") in (0, 6)


def test_a_long_story_has_pages_that_lose_nothing(told: World, viewer: Client) -> None:
    step = told.child.__class__.objects.get(pk=told.child.pk).step
    for number in range(40):
        store_call(Place(run=told.run, step=step), make_call(f"more/{number}"))
    url, seen = f"/environments/{told.child.pk}/making/", []
    after: int | None = 0
    while after is not None:
        page = viewer.get(url, {"after": after} if after else {})
        seen += [e.call.row.pk for e in page.context["entries"] if e.call]
        after = page.context["more"]
    assert seen == list(ModelCall.objects.order_by("pk").values_list("pk", flat=True))


def test_a_seed_and_a_procedural_child_have_no_story_to_tell(world: World, viewer: Client) -> None:
    assert "imported, not made here" in viewer.get(f"/environments/{world.seed.pk}/making/").text
    assert "Nothing was recorded" in viewer.get(f"/environments/{world.child.pk}/making/").text


def test_damaged_words_are_said_to_be_damaged(told: World, viewer: Client) -> None:
    digest = ModelCall.objects.filter(role="proposer").get().response_digest
    Blob.objects.filter(digest=digest).update(data=b"damaged")
    assert "content damaged" in viewer.get(f"/environments/{told.child.pk}/making/").text


def test_the_calls_of_a_run_are_filtered_by_role_outcome_and_words(
    told: World, viewer: Client
) -> None:
    def count(**query: str) -> int:
        return len(viewer.get(f"/runs/{told.run.pk}/calls/", query).context["calls"])

    assert count() == 6
    assert count(role="modifier") == 3
    assert count(outcome="faults") == 2
    assert count(outcome="timeout", role="modifier") == 1
    assert count(q="accepted") == 1
    assert count(role="nobody", outcome="nothing") == 6


def test_an_export_holds_every_call_whole(told: World, viewer: Client) -> None:
    for url in (
        f"/environments/{told.child.pk}/making.jsonl",
        f"/runs/{told.run.pk}/calls.jsonl",
    ):
        response = viewer.get(url)
        assert response["Content-Disposition"].startswith("attachment")
        body = b"".join(response.streaming_content)  # type: ignore[attr-defined]
        rows = [json.loads(line) for line in body.splitlines()]
        assert len(rows) == 6
        assert rows[0]["request"]["messages"][0]["parts"][0]["content"].startswith("You are given")
        assert {row["outcome"] for row in rows} == {"answered", "rate_limited", "timeout"}


def test_one_call_is_shown_whole(told: World, viewer: Client) -> None:
    row = ModelCall.objects.filter(role="modifier", outcome="timeout").get()
    page = viewer.get(f"/calls/{row.pk}/")
    for words in ("nothing came for 60 s", "estimated", "≈ 0.0061", row.place):
        assert words in page.text
    assert viewer.get("/calls/999999/").status_code == 404


def test_the_run_page_shows_spend_by_role_and_what_an_accepted_one_took(
    told: World, viewer: Client
) -> None:
    page = viewer.get(f"/runs/{told.run.pk}/")
    spend = page.context["spend"]
    assert [(s.name, s.calls, s.faults) for s in spend.roles] == [
        ("proposer", 1, 0),
        ("plan_reviewer", 2, 1),
        ("modifier", 3, 1),
    ]
    assert (spend.accepted, spend.usd_each) == (1, pytest.approx(4 * 0.0042 + 0.0061))
    assert dict(spend.faults) == {"rate_limited": 1, "timeout": 1}
    assert "of 0.50" in page.text
    assert [round(row.percent, 1) for row in page.context["budget"]] == [4.6]


def test_what_tools_gave_is_no_call_to_a_model(told: World, viewer: Client) -> None:
    ModelCall.objects.filter(role="modifier").update(model="sandbox")
    assert viewer.get(f"/runs/{told.run.pk}/").context["spend"].total.calls == 3
    assert len(viewer.get(f"/runs/{told.run.pk}/calls/").context["calls"]) == 3
    page = viewer.get(f"/environments/{told.child.pk}/making/")
    assert page.context["total"].calls == 3


def test_a_procedural_run_shows_no_models(world: World, viewer: Client) -> None:
    assert viewer.get(f"/runs/{world.run.pk}/").context["spend"] is None


def test_a_run_whose_budget_is_used_up_says_so_and_goes_on_with_a_larger_one(
    told: World, as_role: Callable[[Rank], Client]
) -> None:
    EvolutionRun.objects.filter(pk=told.run.pk).update(
        status=RunStatus.PAUSED, pause_reason=PauseReason.BUDGET, error="0.02 of 0.02 USD"
    )
    EvolutionRun.objects.filter(pk=told.run.pk).update(budget_usd=0.02)
    operator, url = as_role(Rank.OPERATOR), f"/runs/{told.run.pk}/"
    assert "Rests: the budget is used up." in operator.get(url).text
    for given, said in (
        ({}, "has used 0.0229 of 0.0200 USD"),
        ({"budget_usd": "0.021"}, "has used 0.0229 of 0.0210 USD"),
        ({"budget_usd": "much"}, "Budget in USD"),
        ({"budget_usd": ""}, "needs a budget"),
    ):
        assert said in operator.post(f"{url}resume/", given, follow=True).text, given
        told.run.refresh_from_db()
        assert told.run.status == RunStatus.PAUSED
    operator.post(f"{url}resume/", {"budget_usd": "1.5"})
    told.run.refresh_from_db()
    assert (told.run.budget_usd, told.run.pause_reason, told.run.error) == (1.5, "", "")
    assert told.run.status != RunStatus.PAUSED


def test_a_run_of_models_is_started_with_a_budget(
    world: World, as_role: Callable[[Rank], Client]
) -> None:
    operator = as_role(Rank.OPERATOR)
    form = {
        "lineages": [world.seed.lineage_id],
        "generations": 1,
        "children": 1,
        "effort": "low",
        "seed": 0,
        "author": "llm",
    }
    refused = operator.post("/runs/new/", form)
    assert refused.status_code == 422
    assert "a run with models needs a budget" in refused.text
    sent = form | {"budget_tokens": "100000", "step_tokens": "9000"}
    assert "no model is configured" in operator.post("/runs/new/", sent).text
    with override_settings(RATCHET_MODELS="default=http://127.0.0.1:9/v1 m", RATCHET_PRICES=""):
        unpriced = operator.post("/runs/new/", form | {"budget_usd": "5"})
        assert unpriced.status_code == 422
        assert "a budget in USD needs a price for http://127.0.0.1:9/v1 m" in unpriced.text
        looked = operator.post("/runs/new/", sent | {"forecast": "1"})
        assert looked.status_code == 200
        for words in ("618,300", "206,100", "1,854,900", "assumed: no step is recorded", "0 of 1"):
            assert words in looked.text, words
        idle = operator.post("/runs/new/", form | {"author": "procedural", "forecast": "1"})
        assert "there is nothing to forecast" in idle.text
        assert EvolutionRun.objects.count() == 1, "a forecast starts nothing"
        operator.post("/runs/new/", sent)
    run = EvolutionRun.objects.latest("pk")
    assert (run.author, run.budget_tokens, run.budget_usd) == ("llm", 100_000, None)
    assert run.step_tokens == 9_000
    assert "Each step for itself: 9,000 tokens" in operator.get(f"/runs/{run.pk}/").text


def test_the_models_page_names_models_and_what_the_doctor_found_but_no_key(
    as_role: Callable[[Rank], Client],
) -> None:
    operator = as_role(Rank.OPERATOR)
    assert "No model is connected" in operator.get("/models/").text
    found = {"openai:gpt-x": ["ok", "answers in 0.4 s"]}
    append_event("models.checked", facts={"models": found, "host": "worker-1"})
    with override_settings(RATCHET_MODELS="default=openai:gpt-x key_env=MY_KEY"):
        page = operator.get("/models/")
    assert page.text.count("answers in 0.4 s") == len(Role)
    assert "worker-1" in page.text
    with override_settings(RATCHET_MODELS="default=gpt-x"):
        assert "RATCHET_MODELS, entry" in operator.get("/models/").text


def test_a_usage_that_is_told_as_nothing_is_shown_as_nothing(told: World, viewer: Client) -> None:
    place = Place(run=told.run)
    store_call(place, make_call("odd", outcome=CallOutcome.EMPTY, usage=Usage(), answer=says("")))
    assert "empty answer" in viewer.get(f"/runs/{told.run.pk}/calls/?outcome=empty").text
    hostile = make_call("escape", messages=[user("\x1b]8;;http://x\x07link\x1b]8;;\x07")])
    pk = store_call(place, hostile)
    assert "\x1b" not in viewer.get(f"/calls/{pk}/").text
