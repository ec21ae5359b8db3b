"""The page of the gates: answers, evidence, the parent's beside them, one gate asked again."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.test import Client

from evolution.gates.versions import PROTOCOL_VERSION, version_of
from tests.webapp import builders
from tests.webapp.views.conftest import HTMX, World
from webapp.lifecycle import TrialStatus
from webapp.models import GateRecord, Role, Verification
from webapp.models.trial import ALL_GATES


def test_gates_show_reasons_figures_and_where_their_trials_are(
    world: World, viewer: Client
) -> None:
    url = f"/environments/{world.invalid.pk}/gates/"
    page = viewer.get(url)
    failed = next(g for g in page.context["gates"] if g.row.gate == "mutants")
    assert failed.row.view.record.status == "failed"
    for told in (
        "19 of 20 mutants are killed",
        "Mutation score",
        "0.95",
        "0.78 to 1.00 with 90 % confidence, n = 20",
        "3 trials of this gate",
        "bash /solution/solve.sh",
    ):
        assert told in page.text
    trials = viewer.get(f"/environments/{world.invalid.pk}/trials/?v=1&gate=oracle")
    assert {trial.gate for trial in trials.context["trials"]} == {"oracle"}
    builders.add_verification(world.invalid)
    assert viewer.get(f"{url}?v=1").context["verification"].number == 1


def test_every_gate_has_a_row_and_says_why_it_did_not_answer(world: World, viewer: Client) -> None:
    page = viewer.get(f"/environments/{world.invalid.pk}/gates/")
    said = {g.row.gate: g.row.why_not for g in page.context["gates"]}
    assert said["mutants"] == ""
    assert said["headroom"] == "not asked: an earlier gate ended it"
    assert said["exploits"] == "asked in the full protocol only"
    Verification.objects.filter(environment=world.invalid).update(status=TrialStatus.RUNNING)
    page = viewer.get(f"/environments/{world.invalid.pk}/gates/")
    said = {g.row.gate: g.row.why_not for g in page.context["gates"]}
    assert said["headroom"] == "not answered yet"


def test_what_the_parent_answered_stands_beside(world: World, viewer: Client) -> None:
    url = f"/environments/{world.invalid.pk}/gates/"
    page = viewer.get(url)
    assert page.context["beside"].label == "parent"
    assert [(row.gate, row.change) for row in page.context["moved"]] == [("mutants", "worse")]
    assert "1 gate answers differently" in page.text
    assert viewer.get(f"{url}?beside=nothing").context["moved"] == []
    builders.add_verification(world.invalid)
    GateRecord.objects.filter(verification__number=1, gate="oracle").update(status="inconclusive")
    page = viewer.get(f"{url}?beside=1")
    assert page.context["beside"].verification.number == 1
    assert [(row.gate, row.change) for row in page.context["moved"]] == [("oracle", "better")]
    seed = viewer.get(f"/environments/{world.seed.pk}/gates/")
    assert seed.context["beside"] is None


def test_old_and_repeated_answers_are_marked(world: World, viewer: Client) -> None:
    first = world.child.verifications.get()
    second = builders.add_verification(world.child)
    GateRecord.objects.filter(verification=second, gate="oracle").update(source=first)
    url = f"/environments/{world.child.pk}/gates/"
    page = viewer.get(url)
    oracle = next(g for g in page.context["gates"] if g.row.gate == "oracle")
    assert {trial.verification_id for trial in oracle.row.view.trials} == {first.pk}
    assert ">reused</span>" in page.text
    assert "answered in verification 1" in page.text
    assert "9 answers of an earlier version" in page.text
    for record in GateRecord.objects.all():
        GateRecord.objects.filter(pk=record.pk).update(version=version_of(record.gate))
    assert "9 answers of an earlier version" in viewer.get(url).text
    Verification.objects.update(protocol=PROTOCOL_VERSION)
    assert "earlier version" not in viewer.get(url).text


def test_the_matrix_of_mutants_is_drawn_from_the_evidence(world: World, viewer: Client) -> None:
    rows = [
        {"label": "check a", "result": "notices 2, 1 of them alone"},
        {"label": "check b", "result": "notices 1, 0 of them alone"},
        {"label": "check c", "result": "notices none"},
        {"label": "noticed: dropped a line", "result": "by a", "files": ["/app/out"]},
        {"label": "noticed: swapped two", "result": "by a, b and 2 more", "files": ["/app/out"]},
        {"label": "not noticed: added a blank", "result": "reward 1", "last_lines": "+ \n"},
    ]
    GateRecord.objects.filter(verification__environment=world.child, gate="mutants").update(
        evidence=rows
    )
    page = viewer.get(f"/environments/{world.child.pk}/gates/")
    damage = next(g.damage for g in page.context["gates"] if g.row.gate == "mutants")
    assert [(c.name, c.noticed, c.alone, len(c.cells)) for c in damage.checks] == [
        ("a", 2, 1, 2),
        ("b", 1, 0, 1),
        ("c", 0, 0, 0),
    ]
    assert damage.silent == ("c",)
    assert [mutant.more for mutant in damage.mutants] == [0, 2]
    assert "noticed no mutant" in page.text
    assert "added a blank" in page.text


def test_a_verification_is_saved_as_json_with_its_evidence(world: World, viewer: Client) -> None:
    answer = viewer.get(f"/environments/{world.child.pk}/gates.json")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    said = json.loads(answer.content)
    assert said["digest"] == world.child.digest
    oracle = said["gates"]["oracle"]
    assert oracle["status"] == "passed"
    assert oracle["evidence"][0]["last_lines"] == "80 lines read\nreport.csv written\n"
    runs = world.child.verifications.get().trials.filter(gate="oracle").order_by("repetition")
    assert [row["trial"] for row in oracle["evidence"]] == [trial.pk for trial in runs[:2]]
    fresh = builders.make_child(world.seed, 1)
    assert viewer.get(f"/environments/{fresh.pk}/gates.json").status_code == 404


def test_one_gate_is_asked_again_and_the_page_says_how_far_it_is(
    world: World, as_role: Callable[[Role], Client]
) -> None:
    operator = as_role(Role.OPERATOR)
    url = f"/environments/{world.child.pk}"
    sent = {"gate": "mutants", "depth": "full"}
    assert operator.post(f"{url}/verify/", sent).url == f"{url}/gates/?v=2"
    newest = world.child.verifications.get(number=2)
    assert (newest.renewed, newest.depth, newest.status) == ("mutants", "full", "queued")
    page = operator.get(f"{url}/gates/?v=2")
    assert "0 of 17 gates have answered" in page.text
    assert 'hx-trigger="every 2s"' in page.text
    again = operator.post(f"{url}/verify/", {"gate": ALL_GATES}, follow=True)
    assert "under way already" in again.text
    assert world.child.verifications.count() == 2
    Verification.objects.filter(pk=newest.pk).update(status=TrialStatus.COMPLETED)
    ended = operator.get(f"{url}/gates/", headers=HTMX).text
    assert "Verification 2 has ended" in ended
    assert "hx-trigger" not in ended


def test_nonsense_asks_for_no_gate_in_particular(
    world: World, as_role: Callable[[Role], Client]
) -> None:
    url = f"/environments/{world.child.pk}/verify/"
    as_role(Role.OPERATOR).post(url, {"gate": "<script>", "depth": "deepest"})
    newest = world.child.verifications.get(number=2)
    assert (newest.renewed, newest.depth) == ("", "quick")
