"""The gates that an author with models adds: rubrics, then the Exploiter's attempt."""

from __future__ import annotations

from collections.abc import Mapping

from evolution import execution
from evolution.agents import exploiter, judge, rubrics
from evolution.agents.answers import ExploitRuling
from evolution.agents.asking import GaveUp
from evolution.agents.means import Means
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import (
    failed,
    inconclusive,
    machinery_fault,
    not_applicable,
    observe,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.specs import oracle_asks
from evolution.plain_text import plain
from sandbox.contracts import Outcome, SandboxFile, TrialSpec

RUBRICS = "rubrics"
EXPLOITER = "exploiter"


def gates_of(means: Means, case: Case) -> Mapping[str, Steps]:
    """Both gates, the cheaper one first."""
    return {RUBRICS: check_rubrics(means, case), EXPLOITER: check_exploiter(means, case)}


def _place(case: Case, gate: str) -> str:
    direction = case.mutation.demand.direction.value if case.mutation is not None else "-"
    return f"{case.config.seed}/{direction}/{gate}/{case.bundle.digest[:12]}"


def check_rubrics(means: Means, case: Case) -> Steps:
    """Rules first; then the Judge. A ruling counts only with a quote that is in the material."""
    mutation = case.mutation
    results = yield (oracle_asks(case)[0],)
    broken = [
        Evidence(label=name, result=said)
        for name, rule in rubrics.RULES
        if (said := rule(case, results[0])) is not None
    ]
    if broken:
        return failed(RUBRICS, broken[0].result, broken, asked=float(len(rubrics.RULES)))
    if mutation is None:
        return not_applicable(RUBRICS, "no step is at hand that could be judged")
    rulings = judge.judge_rubrics(
        means, _place(case, RUBRICS), case.bundle, mutation.demand, rubrics.JUDGED
    )
    if isinstance(rulings, GaveUp):
        # Nobody has shown a breach, so that nothing is stopped; but nobody has judged either.
        return not_applicable(RUBRICS, f"the rules are kept; nobody judged: {rulings.reason}")
    evidence = [
        Evidence(
            label=ruling.rubric,
            result=f"{'met' if ruling.passed else 'not met'}: {ruling.reason}",
            last_lines=plain(ruling.quote),
        )
        for ruling in rulings
    ]
    wrong = [ruling for ruling in rulings if not ruling.passed]
    figures = {"asked": float(len(rulings)), "met": float(len(rulings) - len(wrong))}
    if wrong:
        reason = f"{wrong[0].rubric}: {wrong[0].reason}"
        return failed(RUBRICS, reason, evidence, **figures)
    return passed(RUBRICS, f"all {len(rulings)} rubrics are met", evidence, **figures)


def check_exploiter(means: Means, case: Case) -> Steps:
    """The claim is tried in a fresh sandbox, and judged only when it earned the full reward."""
    place = _place(case, EXPLOITER)
    found = exploiter.find_exploit(means, place, case.bundle)
    yield ()
    if isinstance(found, GaveUp):
        return not_applicable(EXPLOITER, f"nobody tried, which proves nothing: {found.reason}")
    if not found.script.strip():
        return passed(EXPLOITER, "no way around the work was found")
    asked = Ask(exploit_spec(case, found.script), EXPLOITER)
    results = yield (asked,)
    evidence = [observe("the claimed exploit", asked, results[0])]
    if fault := machinery_fault(results):
        return inconclusive(EXPLOITER, fault, evidence)
    if results[0].outcome is not Outcome.PASS:
        return passed(EXPLOITER, "what was claimed earns no full reward", evidence)
    evidence.append(Evidence(label="script", result=plain(found.how), last_lines=found.script))
    ruling = judge.judge_exploit(
        means, f"{place}/ruling", case.bundle.displayed_instruction, found.script, found.how
    )
    return _ruled(ruling, evidence)


def _ruled(ruling: ExploitRuling | GaveUp, evidence: list[Evidence]) -> GateResult:
    if isinstance(ruling, GaveUp):
        reason = f"a script earns the full reward, and nobody says that it works: {ruling.reason}"
        return failed(EXPLOITER, reason, evidence)
    evidence.append(Evidence(label="ruling", result=ruling.reason, last_lines=plain(ruling.quote)))
    if ruling.does_the_work:
        return passed(EXPLOITER, "the script does the work: another correct way", evidence)
    return failed(EXPLOITER, f"full reward without the work: {ruling.reason}", evidence)


def exploit_spec(case: Case, script: str) -> TrialSpec:
    """A trial in which the script is the whole work."""
    text = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
    files = (SandboxFile("solve.sh", text.encode("utf-8", "replace"), 0o755),)
    solver = execution.solution_solver(case.bundle, EXPLOITER, files)
    return execution.trial_spec(case.bundle, solver)
