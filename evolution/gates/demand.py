"""`demand`: does the new demand bite, and only it? Proved by the effect class of its operator.

Every proof is a handful of cells: a solution, in the child or in the child with the operator
switched off, each in a fresh sandbox, with what has to come out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evolution.contracts import Evidence, GateResult, GateStatus, Mutation
from evolution.directions import Effect
from evolution.gates import budgets, concealment
from evolution.gates.answers import (
    ENDS,
    failed,
    inconclusive,
    machinery_fault,
    named,
    not_applicable,
    observe,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.clerical import clerical_complaint
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import command_spec, oracle_asks, reference_files, solution_spec
from sandbox.contracts import Outcome, SolverEnd, TrialResult

GATE = "demand"
_NEEDS_CONTROL = frozenset({"full_off", "naive_off"})

Expectation = Callable[[Mutation, TrialResult], str | None]
"""Says in one line what is wrong with a cell's result, or None."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a proof."""

    label: str
    ask: Ask
    expect: Expectation


def check(case: Case) -> Steps:
    """Run the proof of the demand that was just added."""
    mutation = case.mutation
    if mutation is None:
        return not_applicable(GATE, "no mutation is at hand to be proved")
    said = concealment.carried_content(case, mutation)
    if said:
        return failed(GATE, said)
    cells = _CELLS[mutation.demand.effect](case, mutation)
    if not mutation.has_control:  # built by hand: there is no switch that turns only this off
        cells = [cell for cell in cells if cell.ask.solver not in _NEEDS_CONTROL]
    results = yield tuple(cell.ask for cell in cells)
    evidence = [
        observe(cell.label, cell.ask, result) for cell, result in zip(cells, results, strict=True)
    ]
    answer = judge(mutation, cells, results, evidence)
    is_proved = answer.status is GateStatus.PASSED and mutation.demand.effect is Effect.SOLUTION
    if is_proved and (said := clerical_complaint(mutation, results[0], results[1])):
        return failed(GATE, said, evidence, **dict(answer.figures))
    return answer


def judge(
    mutation: Mutation,
    cells: Sequence[Cell],
    results: tuple[TrialResult, ...],
    evidence: list[Evidence],
) -> GateResult:
    """The gate's answer from the cells' results."""
    complaints = [
        f"{cell.label}: {said}"
        for cell, result in zip(cells, results, strict=True)
        if machinery_fault((result,)) is None and (said := cell.expect(mutation, result))
    ]
    figures = {"cells": float(len(cells)), "as_expected": float(len(cells) - len(complaints))}
    if complaints:
        return failed(GATE, complaints[0], evidence, **figures)
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault, evidence, **figures)
    reason = f"proved for effect {mutation.demand.effect.value}: all {len(cells)} cells as expected"
    return passed(GATE, reason, evidence, **figures)


def _solution_cells(case: Case, mutation: Mutation) -> list[Cell]:
    """{full, naive} x {operator on, off}: only naive x on fails, and only on the new checks."""
    return [
        _full_on(case),
        Cell("naive, operator on", _ask(mutation, "naive", keep_state=True), bites),
        *_off(case, mutation, ("full_off", "naive_off")),
    ]


def _verifier_cells(case: Case, mutation: Mutation) -> list[Cell]:
    """A wrong solution that passed the parent's tests now fails; the right one passes both."""
    before = case.parent.bundle if case.parent is not None else mutation.control
    label = "wrong solution, parent's tests" if case.parent else "wrong solution, operator off"
    return [
        _full_on(case),
        Cell("wrong solution, operator on", _ask(mutation, "wrong"), bites),
        Cell(label, Ask(solution_spec(before, mutation.wrong), "wrong_parent"), passes),
        *_off(case, mutation, ("full_off",)),
    ]


def _budget_cells(case: Case, mutation: Mutation) -> list[Cell]:
    """The oracle needs at most 70 % of the limit on every run; the stored naive exceeds it."""
    runs = [
        Cell(f"full, operator on, run {ask.repetition}", ask, budgets.fits)
        for ask in oracle_asks(case)
    ]
    naive = Ask(solution_spec(mutation.child, mutation.naive, keep_state=True), "naive")
    return [
        *runs,
        Cell("naive, operator on", naive, exceeds),
        *_off(case, mutation, ("full_off", "naive_off")),
    ]


def _observation_cells(case: Case, mutation: Mutation) -> list[Cell]:
    """Who follows the decoy fails; every withheld fact can be found out inside."""
    cells = [
        _full_on(case),
        Cell("follows the decoy", _ask(mutation, "decoy"), bites),
        *_off(case, mutation, ("full_off",)),
    ]
    if mutation.withheld:
        ask = Ask(command_spec(mutation.child, mutation.discovery), "discovery")
        cells.append(Cell("discovery", ask, concealment.is_discovered))
    return cells


_CELLS = {
    Effect.SOLUTION: _solution_cells,
    Effect.VERIFIER: _verifier_cells,
    Effect.BUDGET: _budget_cells,
    Effect.OBSERVATION: _observation_cells,
}


def _full_on(case: Case) -> Cell:
    return Cell("full, operator on", oracle_asks(case)[0], _shows_new_checks)


def _ask(mutation: Mutation, part: str, *, keep_state: bool = False) -> Ask:
    files = {"naive": mutation.naive, "wrong": mutation.wrong, "decoy": mutation.decoy}[part]
    return Ask(solution_spec(mutation.child, files, keep_state=keep_state), part)


def _off(case: Case, mutation: Mutation, names: tuple[str, ...]) -> list[Cell]:
    files = {"full_off": reference_files(case.bundle), "naive_off": mutation.naive}
    labels = {"full_off": "full, operator off", "naive_off": "naive, operator off"}
    return [
        Cell(labels[name], Ask(solution_spec(mutation.control, files[name]), name), passes)
        for name in names
    ]


def passes(_: Mutation, result: TrialResult) -> str | None:
    """Full reward is expected."""
    if result.is_passed:
        return None
    return f"should pass, {_ended(result)}"


def _shows_new_checks(mutation: Mutation, result: TrialResult) -> str | None:
    said = passes(mutation, result)
    if said:
        return said
    missing = set(mutation.demand.checks) - {check.name for check in result.checks}
    if not mutation.demand.checks:
        return "the demand names no check of its own"
    return f"the tests do not report the new checks {named(missing)}" if missing else None


def bites(mutation: Mutation, result: TrialResult) -> str | None:
    """A failure is expected: on at least one new check, and on none that the demand spares."""
    if result.outcome is Outcome.PASS:
        return "should fail and passes: the demand asks for nothing that was not done already"
    if result.outcome is Outcome.INVALID_REWARD:
        return f"the tests leave no usable reward: {result.error}"
    demand, wrong = mutation.demand, result.failed_checks
    spared = wrong - {*demand.checks, *demand.premise}
    if spared:
        return f"also fails checks that the demand does not touch: {named(spared)}"
    if not mutation.has_control and result.checks and len(wrong) == len(result.checks):
        return "fails every check: it lacks more than what the new demand asks for"
    if not wrong & set(demand.checks):
        return f"fails on {named(wrong) or 'no reported check'}, on none of the new checks"
    return None


def exceeds(mutation: Mutation, result: TrialResult) -> str | None:
    """The naive solution has to break the limit: by its end, or by a new check and its size."""
    if not result.is_passed and budgets.has_struck(mutation.demand, result):
        return None
    said = budgets.exceeds(mutation, result) or bites(mutation, result)
    if said and result.solver_end in (SolverEnd.OUT_OF_MEMORY, SolverEnd.QUOTA):
        return f"{ENDS[result.solver_end]}, which is not the limit of this demand; {said}"
    return said


def _ended(result: TrialResult) -> str:
    if result.solver_end is not SolverEnd.DONE:
        return f"was {ENDS[result.solver_end]}"
    if result.outcome is Outcome.INVALID_REWARD:
        return f"leaves no usable reward: {result.error}"
    return f"fails on {named(result.failed_checks) or 'no reported check'}"
