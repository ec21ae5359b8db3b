"""What is run: the bundles of a folder, as trials of the agents oracle and nop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.bundle import Bundle, BundleError
from evolution.execution import nop, oracle, trial_spec
from evolution.reading import Refusal, find_bundles
from sandbox.contracts import Outcome, TrialResult, TrialSpec

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "seeds"
AGENTS = ("oracle", "nop")


class BenchError(Exception):
    """A measurement that says nothing: the message is one line for people."""


@dataclass(frozen=True, slots=True)
class Case:
    """One bundle under the name of its folder."""

    name: str
    bundle: Bundle

    def trial(self, agent: str) -> TrialSpec:
        """One trial by an agent of `AGENTS`. Raises BundleError."""
        solver = {"oracle": oracle, "nop": nop}[agent]
        return trial_spec(self.bundle, solver(self.bundle))


def load_cases(folder: Path) -> tuple[Case, ...]:
    """All bundles below a folder. Raises BenchError when there is none, or one that cannot run."""
    cases = []
    for found in find_bundles(folder):
        if isinstance(found, Refusal):
            raise BenchError(str(found))
        case = Case(Path(found.origin).name, found.bundle)
        try:
            case.trial("oracle")
        except BundleError as error:
            raise BenchError(f"{found.origin}: {error}") from error
        cases.append(case)
    return tuple(cases)


def wrong(agent: str, reward: float | None) -> str:
    """Why this reward is not what the agent must get; empty when it is."""
    if reward is None:
        return "no reward"
    if (reward >= 1.0) != (agent == "oracle"):
        return f"reward {reward:g}"
    return ""


def wrong_result(agent: str, result: TrialResult) -> str:
    """As `wrong`, for a trial of ours."""
    if result.outcome not in (Outcome.PASS, Outcome.FAIL):
        return f"{result.outcome.value}: {result.error}"
    return wrong(agent, result.reward)
