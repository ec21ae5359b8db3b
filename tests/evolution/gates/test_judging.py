"""What each gate makes of its trials' results."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus, Mutation, StepConfig
from evolution.directions import Direction, Effect
from evolution.gates import budgets, demand, headroom, mutants, parent_solution
from evolution.gates.answers import last_lines, named, observe, say
from evolution.gates.case import Case, candidate
from evolution.gates.mutation.equivalence import effective
from evolution.gates.mutation.mutant import Mutant
from evolution.gates.mutation.states import left_behind
from evolution.gates.mutation.tally import Tally
from evolution.gates.protocol import verdict_of, verify
from evolution.gates.specs import oracle_asks
from evolution.memory import MemoryLog
from sandbox.contracts import (
    ArtifactSpec,
    CheckResult,
    Limits,
    Outcome,
    SandboxFile,
    SolverEnd,
    TrialResult,
    Usage,
    VerifierSpec,
)
from tests.evolution.real_sandbox import edited, orders
from tests.evolution.toy_world import WORK, MoreWords, ToyRunner, toy_subject

CONFIG = StepConfig(seed=2)


def toy_mutation(effect: Effect = Effect.SOLUTION) -> Mutation:
    made = MoreWords("more", Direction.SKILL).apply(toy_subject(), 1, random.Random(0))
    return replace(made, demand=replace(made.demand, effect=effect))


def failing(*names: str, end: SolverEnd = SolverEnd.DONE) -> TrialResult:
    checks = tuple(CheckResult(name, "failed") for name in names)
    return TrialResult(
        Outcome.FAIL, (("reward", 0.0),), end, checks=(*checks, CheckResult("ok", "passed"))
    )


PASSING = TrialResult(Outcome.PASS, (("reward", 1.0),), checks=(CheckResult("ok", "passed"),))
NEW = toy_mutation().demand.checks[0]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (failing(NEW), None),
        (PASSING, "should fail and passes"),
        (failing("line-3"), "also fails checks that the demand does not touch: line-3"),
        (failing(NEW, "line-3"), "also fails checks"),
        (failing(), "on none of the new checks"),
        (TrialResult(Outcome.INVALID_REWARD, error="empty"), "no usable reward: empty"),
    ],
)
def test_a_naive_solution_must_fail_on_the_new_checks_and_only_there(
    result: TrialResult, said: str | None
) -> None:
    answer = demand.bites(toy_mutation(), result)
    assert answer is None if said is None else said in str(answer)


def test_checks_whose_premise_is_changed_may_fail_too_but_not_alone() -> None:
    made = toy_mutation()
    made = replace(made, demand=replace(made.demand, premise=("line-3",)))
    assert demand.bites(made, failing(NEW, "line-3")) is None
    assert "on none of the new checks" in str(demand.bites(made, failing("line-3")))


BUDGET = replace(
    toy_mutation(Effect.BUDGET),
    demand=replace(
        toy_mutation().demand,
        facts=(("budget_kind", "memory_bytes"), ("budget_limit", "1000")),
    ),
)


def using(memory: int | None, result: TrialResult = PASSING) -> TrialResult:
    return replace(result, usage=Usage(peak_memory_bytes=memory))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (using(700), None),
        (using(701), "needs 701 of 1,000 (70%)"),
        (using(None), "not measured"),
        (failing(NEW), "should pass"),
    ],
)
def test_an_oracle_needs_at_most_seventy_percent_of_a_budget(
    result: TrialResult, said: str | None
) -> None:
    answer = budgets.fits(BUDGET, result)
    assert answer is None if said is None else said in str(answer)


def test_a_naive_solution_exceeds_the_budget_or_the_limit_is_a_sham() -> None:
    assert budgets.exceeds(BUDGET, using(1001)) is None
    assert "above what it uses" in str(budgets.exceeds(BUDGET, using(1000)))


def limited(kind: str, limit: str) -> Mutation:
    facts = (("budget_kind", kind), ("budget_limit", limit), ("budget_path", WORK))
    return replace(BUDGET, demand=replace(BUDGET.demand, facts=facts))


def test_only_the_limit_of_the_demand_itself_counts_as_struck() -> None:
    full = replace(failing(end=SolverEnd.QUOTA), usage=Usage(struck=("disk",), is_disk_full=True))
    many = replace(failing(end=SolverEnd.QUOTA), usage=Usage(struck=("descriptors",)))
    dead = replace(failing(end=SolverEnd.OUT_OF_MEMORY), usage=Usage(oom_kills=1))
    forks = replace(failing(end=SolverEnd.QUOTA), usage=Usage(peak_processes=16))
    own = {"disk_bytes": full, "memory_bytes": dead, "processes": forks}
    for kind in (*own, "bytes"):
        made = limited(kind, "16")
        for result in (full, many, dead, forks):
            assert budgets.has_struck(made.demand, result) is (own.get(kind) is result)
    said = str(demand.exceeds(limited("disk_bytes", "16"), many))
    assert said.startswith("hindered by its limit on disk, processes or open files, which is not")
    assert demand.exceeds(limited("disk_bytes", "16"), full) is None


def test_a_budget_without_a_readable_limit_is_refused() -> None:
    for value in ("", "many", "0", "-5"):
        facts = (("budget_kind", "memory_bytes"), ("budget_limit", value))
        made = replace(BUDGET, demand=replace(BUDGET.demand, facts=facts))
        assert "no limit that can be read" in str(budgets.fits(made, using(1)))


def test_a_deliverable_is_weighed_with_everything_below_its_path() -> None:
    facts = (("budget_kind", "bytes"), ("budget_limit", "10"), ("budget_path", "/app/out"))
    weighed = replace(BUDGET.demand, facts=facts)
    state = (SandboxFile("/app/out/a", b"123"), SandboxFile("/app/out/b/c", b"45"))
    other = SandboxFile("/app/outside", b"67890")
    assert budgets.spent(weighed, replace(PASSING, state=(*state, other))) == 5
    assert budgets.spent(weighed, replace(PASSING, state=(other,))) is None
    assert budgets.spent(weighed, PASSING) is None


def test_headroom_takes_the_worst_run_and_says_what_was_not_measured() -> None:
    spec = oracle_asks(Case(toy_subject(), CONFIG))[0].spec
    spec = replace(spec, limits=Limits(memory_bytes=1000, processes=10, disk_bytes=None))
    runs = tuple(
        replace(PASSING, usage=Usage(peak_memory_bytes=memory), phases=(("solver", 1.0),))
        for memory in (300, 650)
    )
    fits = headroom.judge(spec, runs)
    assert fits.status is GateStatus.PASSED
    assert dict(fits.figures)["memory_share"] == 0.65
    assert fits.reason.endswith("not measured here: processes")
    tight = headroom.judge(spec, (*runs, using(800)))
    assert tight.status is GateStatus.FAILED
    assert "memory 80%" in tight.reason


def test_headroom_without_a_single_figure_is_no_pass() -> None:
    spec = oracle_asks(Case(toy_subject(), CONFIG))[0].spec
    answer = headroom.judge(spec, (PASSING,))
    assert answer.status is GateStatus.INCONCLUSIVE
    assert "not measured here: memory, processes, seconds" in answer.reason


def renamed(*pairs: tuple[str, str]) -> tuple[Bundle, Bundle]:
    base = orders()
    return base, base.with_files([edited(base, "instruction.md", *pairs)])


def test_names_that_the_instruction_exchanges_are_found() -> None:
    before, after = renamed(("report.json", "summary.json"))
    assert parent_solution.renamed(before, after) == (
        ("/app/out/report.json", "/app/out/summary.json"),
        ("report.json", "summary.json"),
    )
    before, after = renamed(("orders.csv", "sales.csv"), ("`days`", "`day_count`"))
    assert parent_solution.renamed(before, after) == (
        ("/app/data/orders.csv", "/app/data/sales.csv"),
        ("orders.csv", "sales.csv"),
    )


def test_files_that_moved_with_their_content_are_found() -> None:
    before = orders()
    moved = replace(before.by_path["environment/data/orders.csv"], path="environment/data/o.csv")
    after = before.with_files([moved], ["environment/data/orders.csv"])
    assert ("orders.csv", "o.csv") in parent_solution.renamed(before, after)


def test_names_are_mapped_whole_and_all_at_once() -> None:
    text = SandboxFile("solve.sh", b"cp a.txt b.txt; cat data/a.txt xa.txt a.txt.bak a.txt")
    swapped = parent_solution.mapped_files((text,), (("a.txt", "b.txt"), ("b.txt", "a.txt")))
    assert swapped[0].data == b"cp b.txt a.txt; cat data/b.txt xa.txt a.txt.bak b.txt"
    binary = SandboxFile("tool", b"\xff\0a.txt")
    assert parent_solution.mapped_files((binary,), (("a.txt", "b.txt"),)) == (binary,)


def answer(status: GateStatus, *, is_blocking: bool = True) -> GateResult:
    return GateResult("toy", 1, status, "said", is_blocking=is_blocking)


def test_a_failure_weighs_more_than_broken_machinery_and_findings_weigh_nothing() -> None:
    good, bad, unknown = GateStatus.PASSED, GateStatus.FAILED, GateStatus.INCONCLUSIVE
    assert verdict_of([answer(good), answer(GateStatus.NOT_APPLICABLE)]).is_valid
    assert verdict_of([answer(good), answer(unknown), answer(bad)]).status is bad
    assert verdict_of([answer(good), answer(unknown)]).status is unknown
    assert verdict_of([answer(good), answer(bad, is_blocking=False)]).is_valid


@pytest.mark.parametrize("solver", ["oracle", "nop", "solution"])
def test_broken_machinery_is_never_a_failure_whichever_gate_it_strikes(solver: str) -> None:
    case = candidate(toy_subject(), toy_mutation(), CONFIG)
    verdict = verify(case, ToyRunner({solver: 999}), MemoryLog())
    assert verdict.status is GateStatus.INCONCLUSIVE
    assert verdict.failed == ()


def test_a_mutant_without_a_result_is_replaced_by_another_one() -> None:
    case = candidate(toy_subject(), toy_mutation(), CONFIG)
    verdict = verify(case, ToyRunner({"mutant": 10}), MemoryLog())
    assert verdict.is_valid
    figures = dict(verdict.gates[-1].figures)
    assert figures["without_result"] > 0
    assert figures["judged"] >= 20


def test_a_mutant_that_does_not_end_is_not_counted() -> None:
    case = candidate(toy_subject(), toy_mutation(), CONFIG)
    runner = ToyRunner(ends={"mutant": SolverEnd.TIMEOUT})
    verdict = verify(case, runner, MemoryLog())
    figures = dict(verdict.gates[-1].figures)
    assert figures["without_result"] > 0
    assert not any(
        item.label.startswith("noticed: drop a statement") for item in verdict.gates[-1].evidence
    )


@pytest.mark.parametrize("is_minded", [False, True])
def test_whether_a_file_too_many_is_a_damage_is_for_the_tests_to_say(is_minded: bool) -> None:
    verifier = VerifierSpec((), artifacts=(ArtifactSpec("/app/out"),))
    state = (SandboxFile(WORK, b"word\n"),)
    (extra,) = left_behind(verifier, state)
    assert extra.state is not None
    assert extra.path == "/app/out/left-behind.tmp"
    tally = Tally(verifier, (), effective(verifier, (), state))
    ask = oracle_asks(Case(toy_subject(), CONFIG))[0]
    tally.add(extra, ask, failing("line-1") if is_minded else PASSING)
    assert (len(tally.killed), tally.equivalent) == ((1, 0) if is_minded else (0, 1))
    assert tally.is_new((*state, SandboxFile("/app/out/other", b"x"))) is is_minded
    assert not tally.is_new(state)


def test_without_a_folder_among_the_artifacts_nothing_is_left_behind() -> None:
    verifier = VerifierSpec((), artifacts=(ArtifactSpec(WORK),))
    assert left_behind(verifier, (SandboxFile(WORK, b"word\n"),)) == []


def test_a_cancelled_trial_says_nothing_either() -> None:
    case = candidate(toy_subject(), toy_mutation(), CONFIG)
    runner = ToyRunner(verdicts={"solution": Outcome.CANCELLED})
    assert verify(case, runner, MemoryLog()).status is GateStatus.INCONCLUSIVE


def test_output_is_shown_without_escapes_and_not_without_end() -> None:
    noise = (
        b"\x1b[31mred\x1b[0m\n\x1b]8;;http://x\x07link\x1b]8;;\x07\nbell\x07\n\xff\n" + b"x" * 900
    )
    shown = last_lines(noise)
    assert shown.splitlines()[:3] == ["red", "link", "bell"]
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) == 300
    assert len(last_lines(b"line\n" * 100).splitlines()) == 12


def test_evidence_says_how_a_trial_ended() -> None:
    hung = replace(failing("a", "b"), solver_end=SolverEnd.TIMEOUT)
    assert say(hung) == "solution ended by its time-out; reward 0; failed: a, b"
    short = replace(failing("a"), solver_end=SolverEnd.QUOTA)
    assert say(short).startswith("solution hindered by its limit on disk, processes or open files;")
    broken = TrialResult(Outcome.INFRA_ERROR, error="engine gone")
    assert say(broken) == "no result, the machinery broke: engine gone"
    assert named("gfedcba") == "a, b, c, d, e, f and 1 more"
    ask = oracle_asks(Case(toy_subject(), CONFIG))[0]
    shown = observe("oracle", ask, replace(failing("a"), verifier_output=b"no such file\n"))
    assert shown.command == "/solution/solve.sh"
    assert shown.last_lines == "[verifier]\nno such file"
    assert shown.key == ask.spec.key


def test_checks_that_notice_no_mutant_are_named() -> None:
    case = Case(toy_subject(), CONFIG)
    verifier = oracle_asks(case)[0].spec.verifier
    tally = Tally(verifier, (), {}, frozenset({"a", "b"}))
    tally.judged.append((Mutant("drop a line", "/app/out/x", "", state=()), "key", failing("a")))
    answer = mutants.judge(case, tally, [])
    shown = {item.label: item.result for item in answer.evidence}
    assert shown["check a"] == "notices 1, 1 of them alone"
    assert shown["check b"] == "notices none"
    assert dict(answer.figures)["silent_checks"] == 1


def few_judged(case: Case, *results: TrialResult) -> GateStatus:
    """What is said of that many mutants, too few of them."""
    tally = Tally(oracle_asks(case)[0].spec.verifier, (), {}, frozenset({"a"}))
    mutant = Mutant("drop a line", "/app/out/x", "", state=())
    tally.judged.extend((mutant, f"{number}", result) for number, result in enumerate(results))
    return mutants.judge(case, tally, []).status


def test_a_small_result_is_the_fault_of_what_was_made_here_only() -> None:
    ours = candidate(toy_subject(), toy_mutation(), CONFIG)
    theirs = Case(toy_subject(), CONFIG)
    assert few_judged(theirs, failing("a"), failing("a")) is GateStatus.NOT_APPLICABLE
    assert few_judged(theirs, failing("a"), PASSING) is GateStatus.FAILED
    assert few_judged(ours, failing("a"), failing("a")) is GateStatus.FAILED


def test_damage_to_delivered_program_text_that_nobody_notices_is_counted_apart() -> None:
    case = Case(toy_subject(), replace(CONFIG, mutant_count=4))
    verifier = oracle_asks(case)[0].spec.verifier
    state = (SandboxFile("/app/out/Makefile", b"all:\n"), SandboxFile("/app/out/x", b"1\n"))
    tally = Tally(verifier, (), {}, frozenset({"a"}))
    for path in ("/app/out/x", "/app/out/x", "/app/out/Makefile"):
        tally.judged.append((Mutant("drop a line", path, "", state=state), "key", failing("a")))
    assert tally.apart == []
    tally.judged.append((Mutant("drop a line", "/app/out/Makefile", "", state=state), "k", PASSING))
    assert len(tally.apart) == 1
    answer = mutants.judge(case, tally, [])
    assert "3 of 3 mutants noticed" in answer.reason
    assert dict(answer.figures)["program_survivors"] == 1
    unseen = replace(tally, judged=[*tally.judged[:2], *tally.judged[3:]])
    assert unseen.apart == [], "no test looks at that file"
    most = replace(tally, judged=[*tally.judged[1:], tally.judged[-1]])
    assert most.apart == [], "most of the damage is to it"
