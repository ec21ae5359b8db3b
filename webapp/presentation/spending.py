"""What a trial cost, in the order and the words in which it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.contracts import SolverEnd, TrialResult

ORDER = ("prepare", "wait", "start", "solver", "collect", "verifier", "stop")
"""The phases of a trial, as they follow one another."""
WORK = ("solver", "verifier")
"""The phases in which the bundle's own programs run; the rest is ours."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Seconds of one phase; `share` is its percentage of the whole, `at` where it begins."""

    name: str
    seconds: float
    at: float
    share: float
    is_work: bool


@dataclass(frozen=True, slots=True)
class Spending:
    """Where the time of a trial went. `work_share` is a percentage, None without any time."""

    phases: tuple[Phase, ...]
    seconds: float
    work_share: float | None


def spending(result: TrialResult) -> Spending:
    """The phases in their order, each with its place on a bar of 100."""
    known = dict(result.phases)
    names = [name for name in ORDER if name in known] + [n for n in known if n not in ORDER]
    total = sum(known.values())
    phases: list[Phase] = []
    at = 0.0
    for name in names:
        share = 100 * known[name] / total if total else 0.0
        phases.append(Phase(name, known[name], at, share, name in WORK))
        at += share
    work = sum(phase.share for phase in phases if phase.is_work)
    return Spending(tuple(phases), total, work if total else None)


def limits_struck(result: TrialResult) -> tuple[str, ...]:
    """The limits that a trial ran into, in plain words; empty when it met none."""
    found: list[str] = []
    if result.solver_end is SolverEnd.TIMEOUT:
        found.append("time, while solving")
    if result.usage.oom_kills:
        count = result.usage.oom_kills
        found.append(f"memory ({count} process{'es' if count > 1 else ''} killed)")
    if result.usage.is_disk_full:
        found.append("disk")
    if result.solver_end is SolverEnd.QUOTA and not found:
        found.append("a quota, while solving")
    return tuple(found)
