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

    @property
    def milliseconds(self) -> str:
        """As shown: whole ones, below ten with a decimal."""
        value = 1000 * self.seconds
        return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


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
    usage, end = result.usage, result.solver_end
    found: list[str] = ["time, while solving"] if end is SolverEnd.TIMEOUT else []
    if usage.oom_kills:
        many = f"{usage.oom_kills} process{'es' if usage.oom_kills > 1 else ''} killed"
        found.append(f"memory ({many})")
    if usage.is_disk_full:
        found.append("disk")
    found += [name for name in usage.struck if name not in ("memory", "disk")]
    if end is SolverEnd.OUT_OF_MEMORY and not usage.oom_kills:
        found.append("memory")
    if end is SolverEnd.QUOTA and not found:
        found.append("a quota, while solving")
    return tuple(found)
