"""From a case to the trials that its gates ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evolution import execution
from evolution.bundle import Bundle
from evolution.contracts import FileEdit
from evolution.directions import Effect
from evolution.gates.case import Case
from evolution.gates.desk import Ask
from sandbox.contracts import SandboxFile, SolverSpec, TrialSpec

SOLUTION = "solution"


def oracle_asks(case: Case) -> tuple[Ask, ...]:
    """The runs of the reference solution. The first is traced and keeps the state that it left.

    For a demand of effect budget all of them keep it: the limit has to hold on every run. Raises
    BundleError without a reference solution.
    """
    solver = execution.oracle(case.bundle)
    keep_all = case.mutation is not None and case.mutation.demand.effect is Effect.BUDGET
    return tuple(
        Ask(
            execution.trial_spec(
                case.bundle, solver, is_traced=number == 1, keep_state=keep_all or number == 1
            ),
            "oracle",
            number,
        )
        for number in range(1, case.oracle_runs + 1)
    )


def nop_asks(case: Case) -> tuple[Ask, ...]:
    """The runs in which nothing is done. The first keeps the state: the image's own artifacts."""
    solver = execution.nop(case.bundle)
    return tuple(
        Ask(execution.trial_spec(case.bundle, solver, keep_state=number == 1), "nop", number)
        for number in range(1, case.nop_runs + 1)
    )


def solution_spec(
    bundle: Bundle, files: Iterable[SandboxFile], *, keep_state: bool = False
) -> TrialSpec:
    """A trial of these solution files (paths below `solution/`) in this bundle.

    All such trials call their solver alike, so that equal files mean equal trials.
    """
    solver = execution.solution_solver(bundle, SOLUTION, files)
    return execution.trial_spec(bundle, solver, keep_state=keep_state)


def command_spec(bundle: Bundle, command: str) -> TrialSpec:
    """A trial whose solver runs one shell command as the agent would."""
    quiet = execution.nop(bundle)
    return execution.trial_spec(bundle, replace(quiet, name="command", command=command))


def state_spec(bundle: Bundle, state: Iterable[SandboxFile]) -> TrialSpec:
    """A trial in which a given state is judged, without a solver."""
    return execution.trial_spec(bundle, SolverSpec(name="state"), state=tuple(sorted(state)))


def reference_files(bundle: Bundle) -> tuple[SandboxFile, ...]:
    """The reference solution as the oracle would get it."""
    return execution.oracle(bundle).files


def edited(
    files: Iterable[SandboxFile], edits: Iterable[FileEdit], *, folder: str = SOLUTION
) -> tuple[SandboxFile, ...]:
    """A folder's files (paths below it) after edits that name whole paths of the bundle."""
    head = f"{folder}/"
    tree = {file.path: file for file in files}
    for edit in edits:
        path = edit.path.removeprefix(head)
        if edit.file is None:
            tree.pop(path, None)
        else:
            tree[path] = replace(edit.file, path=path)
    return tuple(sorted(tree.values()))
