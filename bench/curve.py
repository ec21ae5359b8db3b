"""How often a flaky environment is caught, against the number of runs of its solution."""

from __future__ import annotations

from dataclasses import replace

from bench.corpus.defects_running import flaky
from bench.corpus.layout import laid_out
from bench.corpus.sound import work_of
from evolution import execution
from evolution.contracts import GateStatus
from evolution.difficulty.posterior import flake_bound
from evolution.gates import oracle
from evolution.gates.desk import Ask
from sandbox.base import TrialRunner
from sandbox.contracts import Outcome

DEPTHS = (3, 5, 10, 20, 30, 60)
RATE = 0.05


def curve(runner: TrialRunner, trials: int, rate: float = RATE) -> list[dict[str, object]]:
    """Run a solution that fails at this rate so often, and judge every window of n runs.

    One row per n: in how many windows the oracle gate failed, beside the exact chance that n runs
    hold a failure. Windows overlap, so the measured share is no better than the trials behind it.
    """
    bundle = laid_out(flaky(work_of("region_totals", 0), rate), "flake")
    spec = execution.trial_spec(bundle, execution.oracle(bundle))
    asks = [Ask(spec, "oracle", number) for number in range(1, trials + 1)]
    results = [runner.run(ask.spec) for ask in asks]
    failures = sum(result.outcome is Outcome.FAIL for result in results)
    rows: list[dict[str, object]] = []
    for n in DEPTHS:
        windows = [range(at, at + n) for at in range(trials - n + 1)]
        caught = 0
        for window in windows:
            own = tuple(replace(asks[at], repetition=at - window.start + 1) for at in window)
            limit = max(oracle.MOST_FLAKY, flake_bound(n))
            answer = oracle.judge(own, tuple(results[at] for at in window), limit)
            caught += answer.status is GateStatus.FAILED
        rows.append(
            {
                "runs": n,
                "caught": round(caught / len(windows), 3) if windows else None,
                "a failure is seen": round(1 - (1 - rate) ** n, 3),
                "failures": f"{failures}/{trials}",
            }
        )
    return rows
