"""Lineages: ancestors, the indented tree with folded chains, and every node's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet
from django.shortcuts import get_object_or_404

from webapp.lifecycle import ReviewStatus, VerificationStatus
from webapp.models import Environment, Lineage
from webapp.selectors.environments import LIST_FIELDS

CHILDREN_PAGE = 100
FIRST_ROWS = 60
"""A fresh tree opens breadth first until it has about this many rows."""
NODE_CAP = 20_000


def list_lineages() -> QuerySet[Lineage]:
    """All lineages with counts of valid and approved environments."""
    evolved = Q(environments__parent__isnull=False)
    return Lineage.objects.annotate(
        valid_count=Count(
            "environments", filter=evolved & Q(environments__verification=VerificationStatus.VALID)
        ),
        approved_count=Count("environments", filter=Q(environments__review=ReviewStatus.APPROVED)),
    ).order_by("name", "id")


def ancestor_paths(path: str) -> list[str]:
    """The paths from the root to this node, itself included."""
    steps = path.split(".")
    return [".".join(steps[: depth + 1]) for depth in range(len(steps))]


def ancestry(environment: Environment) -> tuple[Environment, ...]:
    """The nodes from the root to this one, itself included, for the strip of notches."""
    return tuple(
        Environment.objects.only(*LIST_FIELDS)
        .filter(lineage_id=environment.lineage_id, path__in=ancestor_paths(environment.path))
        .order_by("generation")
    )


@dataclass(slots=True)
class Node:
    """What the tree and the picture need of one environment."""

    pk: int
    parent_id: int | None
    path: str
    generation: int
    title: str
    digest: str
    direction: str
    aspect: str
    operator: str
    verification: str
    review: str
    demands: int
    d_t: float | None
    children: list[Node] = field(default_factory=list)
    descendants: int = 0

    @property
    def state(self) -> str:
        """The one word that is shown: people's decision if there is one, else the verdict."""
        return self.verification if self.review == ReviewStatus.UNREVIEWED else self.review


_NODE_FIELDS = (
    *("pk", "parent_id", "path", "generation", "title", "digest", "direction", "aspect"),
    *("operator", "verification", "review", "demands_live", "d_t"),
)


def load_nodes(lineage_id: int) -> list[Node]:
    """All nodes of a lineage in depth-first order, children and descendant counts set."""
    rows = Environment.objects.filter(lineage_id=lineage_id).order_by("path")
    nodes = [Node(*row) for row in rows.values_list(*_NODE_FIELDS)[:NODE_CAP]]
    by_id = {node.pk: node for node in nodes}
    for node in reversed(nodes):
        parent = by_id.get(node.parent_id) if node.parent_id else None
        if parent is not None:
            parent.descendants += node.descendants + 1
    for node in nodes:
        if node.parent_id in by_id:
            by_id[node.parent_id].children.append(node)
    return nodes


@dataclass(frozen=True, slots=True)
class TreeItem:
    """One row of the indented tree.

    `folded` are single-child generations between this row and its parent row that are not shown;
    `more` is the number of further children below the last one shown.
    """

    node: Node
    folded: tuple[Node, ...] = ()
    items: tuple[TreeItem, ...] = ()
    is_open: bool = False
    more: int = 0
    is_focus: bool = False

    @property
    def last_path(self) -> str:
        """Where the next page of children begins."""
        shown = self.node.children[:CHILDREN_PAGE]
        return shown[-1].path if shown else ""


def build_tree(nodes: Sequence[Node], focus: int | None) -> TreeItem | None:
    """The tree as first shown: open breadth first to about 60 rows, and down to the focus."""
    if not nodes:
        return None
    by_id = {node.pk: node for node in nodes}
    opened = _first_opened(nodes[0])
    kept: set[int] = set()
    node = by_id.get(focus) if focus else None
    if node is not None:
        opened.add(node.pk)
    while node is not None:
        kept.add(node.pk)
        node = by_id.get(node.parent_id) if node.parent_id else None
        if node is not None:
            opened.add(node.pk)
    return _item(nodes[0], opened, kept, focus, ())


def _first_opened(root: Node) -> set[int]:
    opened, level, rows = set[int](), [root], 1
    while level and rows < FIRST_ROWS:
        following: list[Node] = []
        for node in level:
            if node.children and rows < FIRST_ROWS:
                opened.add(node.pk)
                rows += min(len(node.children), CHILDREN_PAGE)
                following.extend(_end_of_chain(child, set())[0] for child in node.children)
        level = following
    return opened


def _end_of_chain(node: Node, kept: set[int]) -> tuple[Node, tuple[Node, ...]]:
    """Follow single children; the last node, and the ones passed that may be folded away."""
    passed: list[Node] = []
    while len(node.children) == 1 and node.pk not in kept:
        passed.append(node)
        node = node.children[0]
    return (node, tuple(passed)) if len(passed) > 2 else ((passed or [node])[0], ())


def _item(
    node: Node, opened: set[int], kept: set[int], focus: int | None, folded: tuple[Node, ...]
) -> TreeItem:
    is_open = node.pk in opened
    shown = _page(node, kept) if is_open else ()
    items = []
    for child in shown:
        end, passed = _end_of_chain(child, kept)
        items.append(_item(end, opened, kept, focus, passed))
    more = len(node.children) - len(shown) if is_open else 0
    return TreeItem(node, folded, tuple(items), is_open, more, node.pk == focus)


def _page(node: Node, kept: set[int]) -> Sequence[Node]:
    first = node.children[:CHILDREN_PAGE]
    return [*first, *(child for child in node.children[CHILDREN_PAGE:] if child.pk in kept)]


def child_items(parent: Environment, after: str) -> tuple[tuple[TreeItem, ...], str, int]:
    """The next 100 children of `parent` whose path is greater than `after`.

    Returns the rows, the path to go on after, and how many are left.
    """
    node = next((n for n in load_nodes(parent.lineage_id) if n.pk == parent.pk), None)
    children = [child for child in node.children if child.path > after] if node else []
    shown = children[:CHILDREN_PAGE]
    ends = [_end_of_chain(child, set()) for child in shown]
    items = tuple(TreeItem(end, passed) for end, passed in ends)
    return items, shown[-1].path if shown else "", len(children) - len(shown)


def get_lineage(pk: int) -> Lineage:
    """The lineage, or 404."""
    return get_object_or_404(Lineage, pk=pk)
