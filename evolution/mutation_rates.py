"""How much of an environment a step changed; numbers between 0 (nothing) and 1 (everything)."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from evolution.bundle import Bundle, content_digest
from sandbox.contracts import SandboxFile


@dataclass(frozen=True, slots=True)
class MutationRates:
    """Rates of change between two environments, and their mean."""

    instruction: float
    environment: float
    verification: float
    mean: float


def mutation_rates(before: Bundle, after: Bundle) -> MutationRates:
    """Compare two bundles: of the instruction the words, of the environment the files, of the
    verification the test units (top-level functions and methods by their syntax trees, other
    files whole)."""
    parts = (
        word_rate(before.instruction, after.instruction),
        _share_changed(_files(before, "environment"), _files(after, "environment")),
        _share_changed(_test_units(before), _test_units(after)),
    )
    instruction, environment, verification = (round(part, 6) for part in parts)
    mean = round(sum(parts) / len(parts), 6)
    return MutationRates(instruction, environment, verification, mean)


def word_rate(before: str, after: str) -> float:
    """1 - longest common subsequence of words / number of words of the longer text."""
    one, two = before.split(), after.split()
    longer = max(len(one), len(two))
    return 1 - common_length(one, two) / longer if longer else 0.0


def common_length(one: list[str], two: list[str]) -> int:
    """Length of the longest common subsequence; time by the product of both lengths."""
    row = [0] * (len(two) + 1)
    for word in one:
        diagonal = 0
        for at, other in enumerate(two, 1):
            above = row[at]
            row[at] = diagonal + 1 if word == other else max(above, row[at - 1])
            diagonal = above
    return row[-1]


def _files(bundle: Bundle, folder: str) -> dict[str, str]:
    return {file.path: f"{file.digest}:{file.mode:o}" for file in bundle.folder(folder)}


def _test_units(bundle: Bundle) -> dict[str, str]:
    units: dict[str, str] = {}
    for file in bundle.folder("tests"):
        found = dict(_functions(file)) if file.path.endswith(".py") else {}
        units.update(found or {file.path: file.digest})
    return units


def _functions(file: SandboxFile) -> Iterable[tuple[str, str]]:
    """Every function and method by name with its tree's digest, and what is left of the module."""
    try:
        tree = ast.parse(file.data)
    except (SyntaxError, ValueError):
        return
    rest: list[str] = []
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file.path}:{owner}{member.name}", content_digest(ast.dump(member).encode())
            else:
                rest.append(ast.dump(member))
    if rest:
        yield f"{file.path}:", content_digest("\n".join(rest).encode())


def _share_changed(before: dict[str, str], after: dict[str, str]) -> float:
    """Added, removed and changed entries / union of the entries."""
    union = before.keys() | after.keys()
    changed = sum(before.get(key) != after.get(key) for key in union)
    return changed / len(union) if union else 0.0
