"""The overview picture of a lineage: every node in its place, binned when there are many.

x is the generation, y the depth-first order. Up to 500 nodes each is a mark of its own, on rails;
above, nodes of one generation that fall into one row of the grid share a cell, and the cell shows
the commonest category.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webapp.presentation.marks import SHAPES
from webapp.selectors.lineages import Node

MARK_CAP = 500
BIN_ROWS = 220
_LEFT, _TOP = 22, 26


@dataclass(frozen=True, slots=True)
class Mark:
    """One node: where, which shape, which colour class, its words."""

    pk: int
    x: float
    y: float
    shape: str
    css: str
    label: str
    is_focus: bool
    is_path: bool


@dataclass(frozen=True, slots=True)
class Legend:
    """A colour, its words and how many nodes have it."""

    css: str
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What the template draws. `cells` are (css, path) pairs when the picture is binned."""

    width: int
    height: int
    marks: tuple[Mark, ...]
    rails: str
    path_rail: str
    cells: tuple[tuple[str, str], ...]
    generations: tuple[tuple[float, int], ...]
    legend: tuple[Legend, ...]
    per_row: float
    column: float
    focus_at: tuple[float, float] | None

    @property
    def is_binned(self) -> bool:
        """Whether cells stand for several nodes."""
        return bool(self.cells)


Category = Callable[[Node], tuple[str, str]]


def _by_state(node: Node) -> tuple[str, str]:
    return f"st-{node.state}", node.state.replace("_", " ")


def _by_direction(node: Node) -> tuple[str, str]:
    return f"dir-{node.direction or 'none'}", node.direction or "seed"


def _by_difficulty(bounds: Sequence[float]) -> Category:
    def category(node: Node) -> tuple[str, str]:
        if node.d_t is None:
            return "ramp-none", "no D_T"
        step = sum(node.d_t > bound for bound in bounds)
        low = f"{bounds[step - 1]:.1f}" if step else "…"
        high = f"{bounds[step]:.1f}" if step < len(bounds) else "…"
        return f"ramp-{step}", f"D_T {low} to {high}"

    return category


def _by_operator(names: Sequence[str]) -> Category:
    known = {name: index for index, name in enumerate(names)}

    def category(node: Node) -> tuple[str, str]:
        index = known.get(node.operator)
        if not node.operator:
            return "dir-none", "seed"
        return (f"op-{index}", node.operator) if index is not None else ("op-other", "others")

    return category


COLOURS = ("status", "direction", "difficulty", "operator")


def categories(nodes: Sequence[Node], colour: str) -> Category:
    """How nodes are coloured: by status, direction, difficulty or operator."""
    if colour == "direction":
        return _by_direction
    if colour == "difficulty":
        known = sorted(node.d_t for node in nodes if node.d_t is not None)
        return _by_difficulty([known[len(known) * i // 6] for i in range(1, 6)] if known else [])
    if colour == "operator":
        common = Counter(node.operator for node in nodes if node.operator).most_common(8)
        return _by_operator([name for name, _ in common])
    return _by_state


def draw(nodes: Sequence[Node], colour: str, focus: int | None) -> Picture:
    """The picture of these nodes (depth-first order), coloured as asked."""
    category = categories(nodes, colour)
    kinds = [category(node) for node in nodes]
    legend = tuple(
        Legend(css, label, count) for (css, label), count in sorted(Counter(kinds).items())
    )
    deepest = max((node.generation for node in nodes), default=0)
    by_id = {node.pk: node for node in nodes}
    trail: set[int] = set()
    node = by_id.get(focus) if focus else None
    while node is not None:
        trail.add(node.pk)
        node = by_id.get(node.parent_id) if node.parent_id else None
    column = max(20.0, min(64.0, 264.0 / max(1, deepest)))
    columns = tuple((_LEFT + column * g, g) for g in range(deepest + 1))
    width = int(_LEFT * 2 + column * deepest)
    shape = (width, column, columns, legend)
    if len(nodes) <= MARK_CAP:
        return _marked(nodes, [css for css, _ in kinds], trail, focus, shape)
    return _binned(nodes, [css for css, _ in kinds], focus, shape)


_Shape = tuple[int, float, tuple[tuple[float, int], ...], tuple[Legend, ...]]


def _marked(
    nodes: Sequence[Node], css: Sequence[str], trail: set[int], focus: int | None, shape: _Shape
) -> Picture:
    width, column, columns, legend = shape
    rows: dict[int, int] = {}
    leaves = 0
    for node in reversed(nodes):  # children before parents
        if node.children:
            rows[node.pk] = rows[node.children[0].pk]
        else:
            rows[node.pk] = leaves
            leaves += 1
    step = max(6.0, min(18.0, 620 / max(1, leaves)))
    at = {
        node.pk: (
            round(_LEFT + column * node.generation, 1),
            round(_TOP + step * (leaves - 1 - rows[node.pk]), 1),
        )
        for node in nodes
    }
    rails: dict[bool, list[str]] = {True: [], False: []}
    for node in nodes:
        if node.parent_id in at:
            (x1, y1), (x2, y2) = at[node.parent_id], at[node.pk]
            rails[node.pk in trail].append(_rail(x1, y1, x2, y2))
    marks = tuple(
        Mark(
            pk=node.pk,
            x=at[node.pk][0],
            y=at[node.pk][1],
            shape=SHAPES.get(node.aspect, "ring"),
            css=css[index],
            label=f"g{node.generation} {node.title}, {node.state}",
            is_focus=node.pk == focus,
            is_path=node.pk in trail,
        )
        for index, node in enumerate(nodes)
    )
    height = int(_TOP + step * max(0, leaves - 1) + 16)
    return Picture(
        width,
        height,
        marks,
        "".join(rails[False]),
        "".join(rails[True]),
        (),
        columns,
        legend,
        1.0,
        column,
        at.get(focus) if focus else None,
    )


def _rail(x1: float, y1: float, x2: float, y2: float) -> str:
    if y1 == y2:
        return f"M{x1} {y1}H{x2}"
    bend = round(x1 + min(12.0, (x2 - x1) / 2), 1)
    return f"M{x1} {y1}L{bend} {y2}H{x2}"


def _binned(nodes: Sequence[Node], css: Sequence[str], focus: int | None, shape: _Shape) -> Picture:
    width, column, columns, legend = shape
    per_row = len(nodes) / BIN_ROWS
    cell = 3.0
    bins: dict[tuple[int, int], Counter[str]] = {}
    focus_at: tuple[float, float] | None = None
    for index, node in enumerate(nodes):
        row = int(index / per_row)
        bins.setdefault((node.generation, row), Counter())[css[index]] += 1
        if node.pk == focus:
            focus_at = (round(_LEFT + column * node.generation, 1), _TOP + cell * row)
    paths: dict[str, list[str]] = {}
    wide = round(min(column - 4, 26.0), 1)
    for (generation, row), counts in sorted(bins.items()):
        x = round(_LEFT + column * generation - wide / 2, 1)
        y = round(_TOP + cell * row - cell / 2, 1)
        kind = counts.most_common(1)[0][0]
        paths.setdefault(kind, []).append(f"M{x:g} {y:g}h{wide:g}v2.6h-{wide:g}z")
    return Picture(
        width + 20,
        int(_TOP + cell * BIN_ROWS + 10),
        (),
        "",
        "",
        tuple((kind, "".join(parts)) for kind, parts in sorted(paths.items())),
        columns,
        legend,
        per_row,
        column,
        focus_at,
    )
