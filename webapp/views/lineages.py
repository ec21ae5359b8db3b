"""Lineages: the list, and the tree with its overview picture."""

from __future__ import annotations

from django.http import Http404
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect

from webapp.forms.filters import read_key
from webapp.http import Request, allow, answer
from webapp.models import Environment, Role
from webapp.presentation import lineage_picture
from webapp.selectors import detail, lineages


@allow(Role.VIEWER)
def lineage_list(request: Request) -> HttpResponseBase:
    """All lineages with their counts."""
    return answer(request, "webapp/lineages.html", {"lineages": lineages.list_lineages()[:500]})


@allow(Role.VIEWER)
def lineage(request: Request, pk: int) -> HttpResponseBase:
    """The indented tree, the picture of the whole, and the node in focus."""
    shown = lineages.get_lineage(pk)
    nodes = lineages.load_nodes(pk)
    focus = read_key(request.GET, "focus") or (nodes[0].pk if nodes else None)
    if focus is not None and all(node.pk != focus for node in nodes):
        raise Http404("this environment is not in this lineage")
    colour = request.GET.get("color", "")
    colour = colour if colour in lineage_picture.COLOURS else "status"
    focused = detail.get_environment(focus) if focus else None
    context = {
        "lineage": shown,
        "tree": lineages.build_tree(nodes, focus),
        "picture": lineage_picture.draw(nodes, colour, focus),
        "colour": colour,
        "colours": lineage_picture.COLOURS,
        "focused": focused,
        "ancestry": lineages.ancestry(focused) if focused else (),
        "node_count": len(nodes),
        "is_cut": len(nodes) == lineages.NODE_CAP,
    }
    return answer(request, "webapp/lineage.html", context)


@allow(Role.VIEWER)
def lineage_panel(request: Request, pk: int) -> HttpResponseBase:
    """The side panel of one node; as a page, the tree with that node in focus."""
    shown = detail.get_environment(pk)
    if not request.htmx:
        return redirect(f"/lineage/{shown.lineage_id}/?focus={pk}")
    context = {"focused": shown, "ancestry": lineages.ancestry(shown)}
    return answer(request, "webapp/lineage.html", context, fragment="panel")


@allow(Role.VIEWER)
def lineage_children(request: Request, pk: int) -> HttpResponseBase:
    """The next hundred children of a node, as tree rows."""
    parent = get_object_or_404(Environment.objects.only("id", "lineage_id", "path"), pk=pk)
    if not request.htmx:
        return redirect(f"/lineage/{parent.lineage_id}/?focus={pk}")
    items, last, more = lineages.child_items(parent, request.GET.get("after", ""))
    context = {
        "items": items,
        "more": more,
        "parent_id": pk,
        "last_path": last,
        "lineage_id": parent.lineage_id,
    }
    return answer(request, "webapp/parts/tree_children.html", context)


@allow(Role.VIEWER)
def lineage_at(request: Request, pk: int) -> HttpResponseBase:
    """The node under a place of the binned picture: generation and depth-first rank."""
    generation, rank = read_key(request.GET, "generation"), read_key(request.GET, "rank")
    nodes = lineages.load_nodes(pk)
    at_generation = [
        (abs(i - (rank or 0)), n) for i, n in enumerate(nodes) if n.generation == generation
    ]
    if not at_generation:
        raise Http404("nothing there")
    nearest = min(at_generation, key=lambda found: found[0])[1]
    return redirect("lineage_panel", pk=nearest.pk)
