"""Trials of a draft: what a role may learn before the gates look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evolution import execution
from evolution.agents.hands import Which
from evolution.agents.trimming import quoted
from evolution.agents.workbench import Bench
from evolution.bundle import Bundle, BundleError
from evolution.gates.answers import last_lines, say
from evolution.gates.specs import solution_spec
from evolution.ports import TrialRunner
from evolution.validation import first_error
from sandbox.contracts import SandboxFile, TrialResult, TrialSpec

LINES = 40


@dataclass
class DraftTrials:
    """Tries a draft in fresh sandboxes, a bounded number of times.

    `draft` gives the bundle as it stands and the naive solution; it may raise DraftError.
    """

    bench: Bench
    runner: TrialRunner
    draft: Callable[[], tuple[Bundle, tuple[SandboxFile, ...]]]
    most: int
    count: int = 0

    def __call__(self, which: Which) -> str:
        """What a trial with this solution came to, as a model reads it."""
        self.count += 1
        if self.count > self.most:
            return f"all {self.most} trials of a draft are used up; finish with what you know"
        try:
            bundle, naive = self.draft()
        except BundleError as error:
            return f"not tried: {error.path}: {error.reason}"
        name = f"{which}:{bundle.digest}"
        return self.bench.trial(name, lambda: self._tried(bundle, naive, which))

    def _tried(self, bundle: Bundle, naive: tuple[SandboxFile, ...], which: Which) -> str:
        try:
            problem = first_error(bundle)
            if problem is not None:
                return f"not tried: {problem.path}: {problem.reason}"
            spec = _spec(bundle, naive, which)
        except BundleError as error:
            return f"not tried: {error.path}: {error.reason}"
        return told(self.runner.run(spec), self.bench.bounds.result)


def _spec(bundle: Bundle, naive: tuple[SandboxFile, ...], which: Which) -> TrialSpec:
    if which == "naive":
        return solution_spec(bundle, naive)
    solver = execution.oracle(bundle) if which == "reference" else execution.nop(bundle)
    return execution.trial_spec(bundle, solver)


def told(result: TrialResult, most: int) -> str:
    """A trial's result with what helps to repair it."""
    rows = [f"- {c.name}: {c.status}{f': {c.message}' if c.message else ''}" for c in result.checks]
    parts = [say(result)]
    if rows:
        parts.append(quoted("checks", "\n".join(rows), most // 2))
    for name, output in (("solver", result.solver_output), ("tests", result.verifier_output)):
        text = last_lines(output, LINES)
        if text and not result.is_passed:
            parts.append(quoted(f"last lines of the {name}", text, most // 2))
    return "\n".join(parts)
