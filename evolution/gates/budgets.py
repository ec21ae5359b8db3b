"""What a demand of effect `budget` limits, and what a run spent of it.

The demand's facts name it: `budget_kind`, `budget_limit` and, for bytes, `budget_path`. The oracle
may need at most 70 % of the limit on every run; the naive solution has to go past it. A limit
counts only where the run can be measured, so an unknown kind is a complaint, not a pass.
"""

from __future__ import annotations

from evolution.contracts import Demand, Mutation
from evolution.operators.base import facts
from sandbox.contracts import SolverEnd, TrialResult

SHARE = 0.7
"""The most of a limit that the oracle may need."""


def limit_of(demand: Demand) -> float | None:
    """The limit, or None where the demand names none that can be read."""
    value = next(iter(facts(demand, "budget_limit")), "")
    try:
        limit = float(value)
    except ValueError:
        return None
    return limit if limit > 0 else None


def spent(demand: Demand, result: TrialResult) -> float | None:
    """What this run spent of the limit, or None where it was not measured."""
    kind = next(iter(facts(demand, "budget_kind")), "")
    if kind == "memory_bytes":
        return result.usage.peak_memory_bytes
    if kind == "disk_bytes":
        return result.usage.disk_bytes
    if kind == "processes":
        return result.usage.peak_processes
    path = next(iter(facts(demand, "budget_path")), "")
    if not path or result.state is None:
        return None
    found = [f for f in result.state if f.path == path or f.path.startswith(f"{path}/")]
    if kind == "bytes":
        return sum(len(file.data) for file in found) if found else None
    if kind == "lines":
        return sum(file.data.count(b"\n") for file in found) if found else None
    return None


_LIMITS = {"memory_bytes": "memory", "disk_bytes": "disk", "processes": "processes"}
"""The limit of a sandbox that stands behind a kind of budget; the others are judged by size."""


def has_struck(demand: Demand, result: TrialResult) -> bool:
    """Whether this very limit hindered the solver, as far as the back-end names what struck."""
    kind = next(iter(facts(demand, "budget_kind")), "")
    if result.solver_end is not SolverEnd.QUOTA:
        return kind == "memory_bytes" and result.solver_end is SolverEnd.OUT_OF_MEMORY
    if _LIMITS.get(kind) in result.usage.struck:
        return True
    if kind == "processes":
        used, limit = spent(demand, result), limit_of(demand)
        return used is not None and limit is not None and used >= limit
    return kind == "disk_bytes" and result.usage.is_disk_full


def fits(mutation: Mutation, result: TrialResult) -> str | None:
    """One line when the oracle's run fails, is not measured, or needs more than its share."""
    demand = mutation.demand
    limit, used = limit_of(demand), spent(demand, result)
    if not result.is_passed:
        return "should pass and does not"
    if limit is None:
        return "the demand names no limit that can be read"
    if used is None:
        return "what the oracle spends of the limit was not measured"
    if used > SHARE * limit:
        return f"needs {used:,.0f} of {limit:,.0f} ({used / limit:.0%}), more than {SHARE:.0%}"
    return None


def exceeds(mutation: Mutation, result: TrialResult) -> str | None:
    """One line when what was spent is known and stays within the limit."""
    limit, used = limit_of(mutation.demand), spent(mutation.demand, result)
    if limit is not None and used is not None and used <= limit:
        return f"spends {used:,.0f} of {limit:,.0f}: the limit is above what it uses"
    return None
