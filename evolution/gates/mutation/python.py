"""Damages to Python code, found in its syntax tree and made in its text."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest

_WEAKER: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}
_DROPPABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Continue, ast.Break, ast.Delete)


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a text that is exchanged: from `start` to `end` in bytes of its UTF-8 form."""

    kind: str
    start: int
    end: int
    text: str


def edits(source: str) -> list[Edit]:
    """Every damage that this code offers, in order of place; none when it does not parse."""
    if "\r" in source.replace("\r\n", "\n"):
        return []  # the parser takes it for the end of a line, and places would be wrong
    try:
        found = list(_Finder(source).find(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):  # broken, or nested beyond writing again
        return []
    return sorted(found, key=lambda e: (e.start, e.end, e.kind, e.text))


def apply(source: str, edit: Edit) -> str:
    """The text after an edit."""
    data = source.encode()
    return (data[: edit.start] + edit.text.encode() + data[edit.end :]).decode()


def in_turn(found: list[Edit], rng: random.Random) -> list[Edit]:
    """Damages in a seeded order, the kinds in turn."""
    mixed = list(found)
    rng.shuffle(mixed)
    by_kind: dict[str, list[Edit]] = {}
    for edit in mixed:
        by_kind.setdefault(edit.kind, []).append(edit)
    rounds = zip_longest(*(by_kind[kind] for kind in sorted(by_kind)))
    return [edit for one_of_each in rounds for edit in one_of_each if edit is not None]


class _Finder:
    def __init__(self, source: str) -> None:
        self._starts = [0]
        for line in source.split("\n"):  # what the parser counts as lines, unlike splitlines
            self._starts.append(self._starts[-1] + len(line.encode()) + 1)

    def find(self, tree: ast.Module) -> Iterator[Edit]:
        """Walk the tree, leaving out what nobody calls a damage: doc strings, f-string parts."""
        skipped: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                skipped.update(ast.walk(node))
            if _is_doc(node):
                skipped.update(ast.walk(node))
            for body in ("body", "orelse"):
                yield from self._statements(getattr(node, body, None))
        for node in ast.walk(tree):
            if node in skipped:
                continue
            if isinstance(node, ast.Constant):
                yield from self._literal(node)
            elif isinstance(node, ast.Compare):
                yield from self._comparison(node)
            elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
                yield self._between("alter arithmetic", node.left, node.right, node)

    def _statements(self, body: object) -> Iterator[Edit]:
        if not isinstance(body, list):
            return
        plain = [node for node in body if isinstance(node, _DROPPABLE) and not _is_doc(node)]
        for node in plain:
            yield self._edit("drop a statement", node, "pass")
        for one, two in pairwise(body):
            if one in plain and two in plain and one.lineno != two.lineno:
                start, end = self._span(one)[0], self._span(two)[1]
                yield Edit(
                    "reorder statements",
                    start,
                    end,
                    f"{ast.unparse(two)}\n{' ' * one.col_offset}{ast.unparse(one)}",
                )

    def _literal(self, node: ast.Constant) -> Iterator[Edit]:
        value = node.value
        if isinstance(value, bool):
            yield self._edit("alter a literal", node, repr(not value))
        elif isinstance(value, int):
            yield self._edit("alter a literal", node, repr(value + 1))
        elif isinstance(value, str) and len(value) > 1:
            yield self._edit("alter a literal", node, repr(value[:-1]))

    def _comparison(self, node: ast.Compare) -> Iterator[Edit]:
        operator = type(node.ops[0])
        if len(node.ops) == 1 and operator in _WEAKER:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            yield self._edit("weaken a comparison", node, f"{left} {_WEAKER[operator]} {right}")

    def _between(self, kind: str, left: ast.expr, right: ast.expr, node: ast.BinOp) -> Edit:
        sign = _OPERATORS[type(node.op)]
        return self._edit(kind, node, f"({ast.unparse(left)} {sign} {ast.unparse(right)})")

    def _edit(self, kind: str, node: ast.expr | ast.stmt, text: str) -> Edit:
        return Edit(kind, *self._span(node), text)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line = node.end_lineno or node.lineno
        end_offset = node.end_col_offset or node.col_offset
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[end_line - 1] + end_offset,
        )


def _is_doc(node: ast.AST) -> bool:
    """A string that stands alone: a doc string, or a comment in disguise."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
