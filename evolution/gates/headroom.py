"""`headroom`: does the oracle fit its limits with room?"""

from __future__ import annotations

from collections.abc import Callable

from evolution.bundle import BundleError
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed, inconclusive, machinery_fault, passed
from evolution.gates.budgets import SHARE
from evolution.gates.case import Case
from evolution.gates.desk import Steps
from evolution.gates.specs import oracle_asks
from sandbox.contracts import TrialResult, TrialSpec

GATE = "headroom"
Measure = tuple[str, Callable[[TrialSpec], float | None], Callable[[TrialResult], float | None]]
MEASURES: tuple[Measure, ...] = (
    ("memory", lambda s: s.limits.memory_bytes, lambda r: r.usage.peak_memory_bytes),
    ("processes", lambda s: s.limits.processes, lambda r: r.usage.peak_processes),
    ("disk", lambda s: s.limits.disk_bytes, lambda r: r.usage.disk_bytes),
    ("seconds", lambda s: s.solver.timeout_seconds, lambda r: dict(r.phases).get("solver")),
)


def check(case: Case) -> Steps:
    """Compare what the oracle's runs needed with what they may need; no trial is run for it."""
    try:
        asks = oracle_asks(case)
    except BundleError as error:
        return inconclusive(GATE, f"no reference solution can be run: {error}")
    results = yield asks
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault)
    return judge(asks[0].spec, results)


def judge(spec: TrialSpec, results: tuple[TrialResult, ...]) -> GateResult:
    """The gate's answer: the highest share of each limit over all runs."""
    evidence: list[Evidence] = []
    shares: dict[str, float] = {}
    unknown: list[str] = []
    for name, limit_of, used_by in MEASURES:
        limit = limit_of(spec)
        if limit is None or limit <= 0:
            evidence.append(Evidence(label=name, result="no limit was asked for"))
            continue
        values = [used_by(result) for result in results]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            unknown.append(name)
            evidence.append(Evidence(label=name, result=f"limit {limit:,.0f}; not measured here"))
            continue
        shares[name] = round(max(known) / limit, 4)
        text = f"{max(known):,.4g} of {limit:,.4g} ({shares[name]:.0%})"
        evidence.append(Evidence(label=name, result=text))
    figures = {f"{name}_share": share for name, share in shares.items()}
    tight = [f"{name} {share:.0%}" for name, share in shares.items() if share > SHARE]
    note = f"; not measured here: {', '.join(unknown)}" if unknown else ""
    if tight:
        reason = f"the oracle needs more than {SHARE:.0%} of a limit: {', '.join(tight)}{note}"
        return failed(GATE, reason, evidence, **figures)
    if not shares:
        return inconclusive(GATE, f"nothing was measured{note}", evidence)
    most = max(shares.items(), key=lambda item: item[1])
    reason = f"the oracle needs at most {most[1]:.0%} of any limit ({most[0]}){note}"
    return passed(GATE, reason, evidence, **figures)
