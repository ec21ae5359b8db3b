"""Nothing grows too large to read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

STATEMENTS, MODULE_LINES, VIEW_LINES, JOB_LINES, TEMPLATE_LINES = 40, 500, 25, 15, 150
PACKAGES = ("webapp", "evolution", "sandbox")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if "migrations" not in path.parts)


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


def count_statements(function: Function) -> int:
    """Every statement inside, nested functions included; the docstring is none."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return sum(isinstance(node, ast.stmt) for part in body for node in ast.walk(part))


def count_lines(function: Function) -> int:
    """Lines from `def` to the end, without the docstring."""
    first = function.body[0]
    docstring = 0
    if ast.get_docstring(function) is not None:
        docstring = (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_the_counting_counts() -> None:
    code = 'def f():\n    """D."""\n    if x:\n        y = 1\n    return y\n'
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert (count_statements(function), count_lines(function)) == (3, 4)


def test_functions_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name} has {count}"
        for path in modules(*PACKAGES, "tests")
        for function in functions(path)
        if (count := count_statements(function)) > STATEMENTS
    ]
    assert not long


def test_modules_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)} has {count}"
        for path in modules(*PACKAGES, "tests", "bench")
        if (count := len(path.read_text().splitlines())) > MODULE_LINES
    ]
    assert not long


@pytest.mark.parametrize(("module", "most"), [("views", VIEW_LINES), ("jobs.py", JOB_LINES)])
def test_views_and_jobs_are_thin(module: str, most: int) -> None:
    place = ROOT / "webapp" / module
    paths = modules(f"webapp/{module}") if place.is_dir() else [place]
    assert paths
    long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name} has {count}"
        for path in paths
        for function in functions(path)
        if not function.name.startswith("_") and (count := count_lines(function)) > most
    ]
    assert not long


def test_templates_are_short() -> None:
    long = [
        f"{path.relative_to(ROOT)} has {count}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if (count := len(path.read_text().splitlines())) > TEMPLATE_LINES
    ]
    assert not long
