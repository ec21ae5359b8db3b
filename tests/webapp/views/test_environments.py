"""The table of environments and each environment's tabs."""

from __future__ import annotations

import gzip
import io
import tarfile
from dataclasses import replace

from django.test import Client

from sandbox.contracts import SolverEnd, Usage
from tests.webapp import builders
from tests.webapp.views.conftest import HTMX, World
from webapp.models import (
    DifficultyScore,
    Event,
    Measure,
    Solver,
    SolverKind,
    Trial,
    Verification,
)
from webapp.presentation.spending import ORDER
from webapp.selectors import detail
from webapp.selectors.environments import PAGE_ROWS
from webapp.services.trials import pack_result, unpack_result

TABS = ("", "files/", "diff/", "gates/", "trials/", "lineage/", "reviews/", "history/")


def test_every_tab_of_every_kind_of_environment_is_a_page(world: World, viewer: Client) -> None:
    for environment in (world.seed, world.child, world.grandchild, world.invalid):
        for tab in TABS:
            response = viewer.get(f"/environments/{environment.pk}/{tab}")
            assert response.status_code == 200, tab
            assert "<h1>" in response.text
            assert environment.title in response.text


def test_the_overview_says_what_changed_why_and_how_difficult_it_is(
    world: World, viewer: Client
) -> None:
    text = viewer.get(f"/environments/{world.grandchild.pk}/").text
    assert world.grandchild.why in text
    assert "2 of 2" in text
    assert "not measured: connect a model or import trials" in text
    assert "Mean scenario rarity" in text
    assert 'class="skill added"' in text


def test_measured_difficulty_shows_its_n_and_interval_and_simulated_stays_apart(
    world: World, viewer: Client
) -> None:
    for name, kind in (("claude", SolverKind.LLM), ("drawn", SolverKind.SIMULATED)):
        DifficultyScore.objects.create(
            environment=world.child,
            measure=Measure.PASS_RATE,
            solver=Solver.objects.create(name=name, kind=kind),
            value=0.42,
            n=24,
            low=0.26,
            high=0.6,
        )
    text = viewer.get(f"/environments/{world.child.pk}/").text
    assert "[0.26, 0.60]" in text
    assert "n = 24" in text
    assert "simulated, no evidence" in text
    assert "not measured" not in text


def test_changed_words_come_as_a_fragment_to_htmx_and_as_a_page_otherwise(
    world: World, viewer: Client
) -> None:
    url = f"/environments/{world.child.pk}/?words=1"
    fragment = viewer.get(url, headers=HTMX)
    page = viewer.get(url)
    assert fragment.text.lstrip().startswith("<section")
    assert "<ins>" in fragment.text
    assert page.text.startswith("<!doctype html>")
    assert "<ins>" in page.text
    assert "HX-Request" in fragment.headers["Vary"]
    boosted = viewer.get(url, headers={**HTMX, "HX-Boosted": "true"})
    restored = viewer.get(url, headers={**HTMX, "HX-History-Restore-Request": "true"})
    assert boosted.text.startswith("<!doctype html>")
    assert restored.text.startswith("<!doctype html>")


def test_the_table_is_filtered_by_each_facet(world: World, viewer: Client) -> None:
    def shown(query: str) -> set[int]:
        page = viewer.get(f"/environments/?{query}").context["page"]
        return {row.pk for row in page.rows}

    everything = {world.seed.pk, world.child.pk, world.grandchild.pk, world.invalid.pk}
    assert shown("") == everything
    assert shown("verification=invalid") == {world.invalid.pk}
    assert shown("generation=1&direction=scenario") == {world.child.pk}
    assert shown("aspect=dynamics") == {world.grandchild.pk}
    assert shown(f"run={world.run.pk}") == everything - {world.seed.pk}
    assert shown(f"lineage={world.seed.lineage_id}&operator=size_budget") == {world.invalid.pk}
    assert shown("gate=mutants") == {world.invalid.pk}
    assert shown(f"text={world.child.digest[:10]}") == {world.child.pk}
    assert shown("text=sealed+second") == {world.grandchild.pk}
    assert shown("text=nowhere+to+be+found") == set()
    assert shown("verification=nonsense&generation=-4&run=x") == everything


def test_facets_count_what_they_would_show(world: World, viewer: Client) -> None:
    facets = viewer.get("/environments/?verification=valid").context["facets"]
    counts = {f.name: {v.value: v.count for v in f.values} for f in facets}
    assert counts["verification"] == {"valid": 3, "invalid": 1}
    assert counts["generation"] == {"0": 1, "1": 1, "2": 1}
    assert counts["operator"] == {"foreign_encoding": 1, "sealed_followup": 1}


def test_facet_links_keep_the_other_filters_and_drop_the_page(world: World, viewer: Client) -> None:
    text = viewer.get("/environments/?verification=valid&before=99999").text
    assert 'href="?verification=valid&amp;direction=scenario"' in text


def test_pages_go_older_and_newer_without_gaps_or_repeats(db: None, viewer: Client) -> None:
    seed = builders.make_seed(1)
    builders.grow_wide(seed, 2 * PAGE_ROWS + 10)
    seen: list[int] = []
    url, newer = "/environments/", []
    while url:
        page = viewer.get(url).context["page"]
        seen += [row.pk for row in page.rows]
        newer.append(page.after)
        url = f"/environments/?before={page.before}" if page.before else ""
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == 2 * PAGE_ROWS + 11
    back = viewer.get(f"/environments/?after={newer[-1]}").context["page"]
    assert [row.pk for row in back.rows] == seen[PAGE_ROWS : 2 * PAGE_ROWS]


def test_a_search_by_htmx_gets_the_results_only(world: World, viewer: Client) -> None:
    response = viewer.get("/environments/?text=sealed", headers=HTMX)
    assert response.text.lstrip().startswith('<div id="results"')


def test_files_are_shown_by_kind(world: World, viewer: Client) -> None:
    base = f"/environments/{world.child.pk}/files/?path="
    assert '<span class="c-k">import</span>' in viewer.get(
        f"{base}solution/report.py"
    ).text.replace("c-kn", "c-k")
    assert "binary content" in viewer.get(f"{base}environment/data/sample.bin").text
    assert "00000010  10 11 12" in viewer.get(f"{base}environment/data/sample.bin").text
    assert viewer.get(f"{base}../../etc/passwd").status_code == 404


def test_a_file_is_downloaded_and_never_shown(world: World, viewer: Client) -> None:
    base = f"/environments/{world.child.pk}/files/raw/?path="
    response = viewer.get(f"{base}environment/data/sample.bin")
    assert response.content == bytes(range(256))
    assert response.headers["Content-Disposition"] == 'attachment; filename="sample.bin"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert viewer.get(f"{base}nothing").status_code == 404


def test_the_bundle_is_downloaded_whole_with_its_modes(world: World, viewer: Client) -> None:
    from webapp.store import load_bundle

    first = viewer.get(f"/environments/{world.child.pk}/download/").content
    again = viewer.get(f"/environments/{world.child.pk}/download/").content
    assert first == again
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as tar:
        found = {
            m.name.split("/", 1)[1]: (m.mode, tar.extractfile(m).read())  # type: ignore[union-attr]
            for m in tar.getmembers()
        }
    bundle = load_bundle(world.child)
    assert found == {f.path: (f.mode, f.data) for f in bundle.files}


def test_the_diff_shows_what_came_from_the_parent_and_from_the_seed(
    world: World, viewer: Client
) -> None:
    base = f"/environments/{world.grandchild.pk}/diff/"
    from_parent = viewer.get(base).context["file_diffs"]
    from_root = viewer.get(f"{base}?against=root&view=split")
    paths = {d.change.path: d.change.kind for d in from_parent}
    assert paths["solution/steps/02-sealed_followup.sh"] == "added"
    assert paths["instruction.md"] == "changed"
    assert "solution/steps/01-foreign_encoding.sh" not in paths
    assert len(from_root.context["file_diffs"]) == len(from_parent) + 2
    assert "<colgroup>" in from_root.text
    assert "no parent" in viewer.get(f"/environments/{world.seed.pk}/diff/").text


def test_a_trial_is_shown_without_terminal_escapes(world: World, viewer: Client) -> None:
    response = viewer.get(f"/trials/{world.trial.pk}/")
    assert "done: 80 lines read" in response.text
    assert "\x1b" not in response.text
    assert "23.4 MB" in response.text


def test_a_trial_tells_what_it_cost_and_where_it_ran(world: World, viewer: Client) -> None:
    trials = Trial.objects.filter(verification__environment=world.child, solver="oracle")
    traced, untraced = trials.order_by("repetition")[:2]
    page = viewer.get(f"/trials/{traced.pk}/")
    assert [phase.name for phase in page.context["spent"].phases] == [
        name for name in ORDER if name != "wait"
    ]
    assert page.context["cost"] == detail.TraceCost(0.141, 0.118, 2)
    for told in (
        "bubblewrap, on the host&#x27;s /usr",
        "cpus = 0.5 is enforced as 1 whole",
        "0.14 s of solving; 0.12 s when not followed",
        "/app/data/access.log.1",
        "48.1 kB",
    ):
        assert told in page.text
    plain = viewer.get(f"/trials/{untraced.pk}/")
    assert plain.context["cost"] is None
    assert "Trace" not in plain.text
    tab = viewer.get(f"/environments/{world.child.pk}/trials/").text
    assert "traced" in tab
    assert "23.4 MB" in tab


def test_a_limit_that_struck_is_named_at_the_top(world: World, viewer: Client) -> None:
    trial = world.trial
    result = unpack_result(bytes(trial.record))
    spoiled = replace(result, usage=Usage(oom_kills=1), solver_end=SolverEnd.OUT_OF_MEMORY)
    Trial.objects.filter(pk=trial.pk).update(record=pack_result(spoiled))
    text = viewer.get(f"/trials/{trial.pk}/").text
    assert "Limits that struck: memory (1 process killed)" in text
    assert "not measured" in text


def test_an_environment_says_on_what_its_verdict_rests(world: World, viewer: Client) -> None:
    url = f"/environments/{world.child.pk}/"
    assert "(not on its image)" in viewer.get(url).text
    Verification.objects.update(backend="docker")
    text = viewer.get(url).text
    assert "Docker" in text
    assert "not on its image" not in text
    assert "Docker" in viewer.get(f"{url}gates/").text


def test_history_is_paged(world: World, viewer: Client) -> None:
    Event.objects.bulk_create(
        Event(kind="note", text=f"n{i}", environment=world.child) for i in range(150)
    )
    first = viewer.get(f"/environments/{world.child.pk}/history/")
    second = viewer.get(f"/environments/{world.child.pk}/history/?before={first.context['before']}")
    assert len(first.context["events"]) == 100
    assert len(second.context["events"]) == 51
    assert second.context["before"] is None


def test_an_empty_store_says_what_to_do(db: None, viewer: Client) -> None:
    for url in ("/", "/environments/", "/lineage/", "/runs/", "/datasets/"):
        response = viewer.get(url)
        assert response.status_code == 200
    assert "import_environments" in viewer.get("/environments/").text


def test_an_endless_query_is_refused_before_it_is_repeated(world: World, viewer: Client) -> None:
    answer = viewer.get("/environments/", {"anything": "x" * 5000})
    assert answer.status_code == 414
    assert len(answer.content) < 200
