"""Lineages: the list, the tree, the picture, the panel."""

from __future__ import annotations

import gzip

from django.test import Client

from tests.webapp import builders
from tests.webapp.views.conftest import HTMX, World
from webapp.models import Environment
from webapp.presentation.lineage_picture import COLOURS, MARK_CAP
from webapp.selectors.lineages import CHILDREN_PAGE, TreeItem


def rows(item: TreeItem) -> list[TreeItem]:
    return [item, *(row for child in item.items for row in rows(child))]


def test_the_list_counts_nodes_valid_and_approved(world: World, viewer: Client) -> None:
    (lineage,) = viewer.get("/lineage/").context["lineages"]
    assert (lineage.node_count, lineage.valid_count, lineage.approved_count) == (4, 2, 0)


def test_small_lineages_show_every_node_in_tree_and_picture(world: World, viewer: Client) -> None:
    context = viewer.get(f"/lineage/{world.seed.lineage_id}/").context
    everything = {world.seed.pk, world.child.pk, world.grandchild.pk, world.invalid.pk}
    assert {row.node.pk for row in rows(context["tree"])} == everything
    assert {mark.pk for mark in context["picture"].marks} == everything


def test_long_single_chains_are_folded_and_unfold_towards_the_focus(
    db: None, viewer: Client
) -> None:
    node = builders.make_seed(0)
    chain = [node]
    for number in range(8):
        node = builders.make_child(node, number)
        chain.append(node)
    url = f"/lineage/{node.lineage_id}/"
    folded = rows(viewer.get(url).context["tree"])
    assert [row.node.pk for row in folded] == [chain[0].pk, chain[-1].pk]
    assert len(folded[1].folded) == 7
    middle = rows(viewer.get(f"{url}?focus={chain[4].pk}").context["tree"])
    assert {row.node.pk for row in middle} >= {one.pk for one in chain[:5]}
    assert next(row for row in middle if row.is_focus).node.pk == chain[4].pk


def test_children_come_a_hundred_at_a_time(db: None, viewer: Client) -> None:
    seed = builders.make_seed(0)
    Environment.objects.bulk_create(
        builders.light_child(seed, ordinal) for ordinal in range(2 * CHILDREN_PAGE + 30)
    )
    page = viewer.get(f"/lineage/{seed.lineage_id}/").context["tree"]
    assert (len(page.items), page.more) == (CHILDREN_PAGE, CHILDREN_PAGE + 30)
    seen = [item.node.path for item in page.items]
    url = f"/lineage/children/{seed.pk}/?after={page.last_path}"
    while True:
        context = viewer.get(url, headers=HTMX).context
        seen += [item.node.path for item in context["items"]]
        if not context["more"]:
            break
        url = f"/lineage/children/{seed.pk}/?after={context['last_path']}"
    assert seen == sorted(set(seen))
    assert len(seen) == 2 * CHILDREN_PAGE + 30


def test_two_thousand_nodes_are_drawn_as_cells_that_stay_small(db: None, viewer: Client) -> None:
    seed = builders.make_seed(0)
    builders.grow_wide(seed, 2_000)
    for colour in (*COLOURS, "nonsense"):
        response = viewer.get(f"/lineage/{seed.lineage_id}/?color={colour}")
        picture = response.context["picture"]
        assert picture.is_binned
        assert sum(entry.count for entry in picture.legend) == 2_001
        assert len(gzip.compress(response.content)) < 30_000
        assert len(rows(response.context["tree"])) <= 200
    place = viewer.get(f"/lineage/{seed.lineage_id}/at/?generation=3&rank=900", headers=HTMX)
    found = Environment.objects.get(pk=int(place.url.split("/")[-2]))
    assert (found.lineage_id, found.generation) == (seed.lineage_id, 3)


def test_marks_of_their_own_up_to_five_hundred_nodes(db: None, viewer: Client) -> None:
    seed = builders.make_seed(0)
    builders.grow_wide(seed, MARK_CAP - 1)
    picture = viewer.get(f"/lineage/{seed.lineage_id}/").context["picture"]
    assert len(picture.marks) == MARK_CAP
    assert len({(mark.x, mark.y) for mark in picture.marks}) == MARK_CAP


def test_the_panel_is_a_fragment_and_leads_to_the_tree_without_htmx(
    world: World, viewer: Client
) -> None:
    url = f"/lineage/panel/{world.child.pk}/"
    fragment = viewer.get(url, headers=HTMX)
    assert fragment.text.lstrip().startswith("<aside")
    assert world.child.why in fragment.text
    assert viewer.get(url).url == f"/lineage/{world.seed.lineage_id}/?focus={world.child.pk}"


def test_a_focus_outside_the_lineage_is_not_found(world: World, viewer: Client) -> None:
    other = builders.make_seed(1)
    assert viewer.get(f"/lineage/{other.lineage_id}/?focus={world.child.pk}").status_code == 404
