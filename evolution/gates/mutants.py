"""`mutants`: do the tests notice damage?

Damaged solutions and damaged states are judged; every one that differs from the whole in meaning,
and from the others, counts once. The lower 90 % bound of the share that is noticed has to be 0.8,
and every new check has to notice something; for effect `solution`, something that no older check
notices, those aside whose premise the demand changed: they notice its damages through it.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from itertools import islice

from evolution import execution
from evolution.contracts import Evidence, GateResult
from evolution.difficulty.posterior import lower_bound
from evolution.directions import Effect
from evolution.gates.answers import (
    failed,
    inconclusive,
    machinery_fault,
    named,
    not_applicable,
    passed,
    say,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.mutation.equivalence import effective
from evolution.gates.mutation.mutant import Mutant
from evolution.gates.mutation.solutions import solution_mutants
from evolution.gates.mutation.states import left_behind, state_mutants, worked_on
from evolution.gates.mutation.tally import Tally
from evolution.gates.specs import nop_asks, oracle_asks, reference_files, solution_spec, state_spec
from sandbox.contracts import (
    Outcome,
    SandboxFile,
    SolverSpec,
    TrialResult,
    TrialSpec,
)

GATE = "mutants"
CONFIDENCE = 0.9
LEAST_SCORE = 0.8
SOLUTION_SHARE = 0.3
"""The part of the first round that damages the solution; these cost a whole trial each."""
ROUNDS = 4
SILENT = "notices none"
MOST_NAMED = 60
"""Checks that are named per mutant: a page draws from them which check noticed which."""
AIMED = 6
"""Damages per round to what the newest demand delivers."""
_RUNGS = (10.0, 30.0)


def check(case: Case) -> Steps:
    """Damage, judge, count; in rounds, until enough mutants are judged."""
    whole, untouched = oracle_asks(case)[0], nop_asks(case)[0]
    reference = yield whole, untouched
    if fault := machinery_fault(reference):
        return inconclusive(GATE, fault)
    oracle, nop = reference
    if not oracle.state:
        return not_applicable(GATE, "no declared artifact: what is left cannot be told apart")
    verifier, image = whole.spec.verifier, nop.state or ()
    checks = frozenset(check.name for check in oracle.checks)
    tally = Tally(verifier, image, effective(verifier, image, oracle.state), checks)
    parts = yield from _parts(case)
    yield from _rounds(case, tally, oracle, oracle.state, parts)
    return judge(case, tally, parts)


def _parts(case: Case) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], list[TrialResult]]:
    """What the demand's own wrong solutions come to: the demand gate has run them already."""
    mutation = case.mutation
    if mutation is None:
        return []
    sets = [("naive", mutation.naive), ("wrong", mutation.wrong), ("decoy", mutation.decoy)]
    asks = [Ask(solution_spec(case.bundle, files), name) for name, files in sets if files]
    results = yield tuple(asks)
    return [result for result in results if result.outcome is Outcome.FAIL]


def _rounds(
    case: Case,
    tally: Tally,
    oracle: TrialResult,
    state: tuple[SandboxFile, ...],
    parts: list[TrialResult],
) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], None]:
    rng = random.Random(f"mutants:{case.bundle.digest}:{case.config.seed}")
    wanted = case.config.mutant_count
    solutions = solution_mutants(reference_files(case.bundle), rng)
    states = state_mutants(state, rng, worked_on(state, tally.image))
    aimed = state_mutants(state, rng, _aims(case, state))
    seconds = _rung(dict(oracle.phases).get("solver", 0.0))
    for number in range(ROUNDS):
        missing = wanted - len(tally.judged)
        unproved = unproved_checks(case, tally, parts)
        if missing <= 0 and not unproved:
            return
        batch = [] if number else left_behind(tally.verifier, state)
        batch += _new_states(tally, aimed, AIMED) if unproved else []
        if missing > 0:
            share = SOLUTION_SHARE if number == 0 else 0.2
            batch += list(islice(solutions, round(share * missing)))
            batch += _new_states(tally, states, wanted - len(tally.judged) - len(batch))
        if not batch:
            return
        asks = [_ask(case, mutant, seconds) for mutant in batch]
        results = yield tuple(asks)
        for mutant, ask, result in zip(batch, asks, results, strict=True):
            tally.add(mutant, ask, result)


def _new_states(tally: Tally, states: Iterator[Mutant], count: int) -> list[Mutant]:
    """The next damaged states that are no repeats; few tries are in vain."""
    made: list[Mutant] = []
    for mutant in islice(states, max(0, count) * 4):
        if len(made) >= count:
            break
        if mutant.state is not None and tally.is_new(mutant.state):
            made.append(mutant)
    return made


def _aims(case: Case, state: tuple[SandboxFile, ...]) -> list[str]:
    """The artifacts that carry the newest demand: what it names, else what it made new."""
    if case.mutation is None:
        return []
    values = [value for _, value in case.mutation.demand.facts if value.startswith("/")]
    paths = [file.path for file in state]
    named_ones = [
        path for path in paths if any(path == v or path.startswith(f"{v}/") for v in values)
    ]
    if named_ones:
        return named_ones
    before = case.parent.oracle if case.parent is not None else None
    known = {file.path for file in before.result.state or ()} if before is not None else set()
    return [path for path in paths if path not in known]


def _rung(seconds: float) -> float:
    """The time-out of a mutant's solver: room for ten times the oracle's, from a fixed ladder."""
    return next((rung for rung in _RUNGS if rung >= 10 * seconds), execution.SOLVER_CAP_SECONDS)


def _ask(case: Case, mutant: Mutant, seconds: float) -> Ask:
    """Named by its key, so that a resumed verification finds it whatever was lost in between."""
    spec = _spec(case, mutant, seconds)
    return Ask(spec, f"mutant:{spec.key[:8]}", retries=1)


def _spec(case: Case, mutant: Mutant, seconds: float) -> TrialSpec:
    if mutant.state is not None:
        return state_spec(case.bundle, mutant.state)
    solver: SolverSpec = execution.solution_solver(
        case.bundle, "mutant", mutant.files or (), cap_seconds=seconds
    )
    return execution.trial_spec(case.bundle, solver, keep_state=True)


def unproved_checks(case: Case, tally: Tally, parts: list[TrialResult]) -> dict[str, str]:
    """The new checks that have not shown yet what they are for, each with what is missing."""
    if case.mutation is None:
        return {}
    demand = case.mutation.demand
    wrongs = [result.failed_checks for result in parts]
    wrongs += [result.failed_checks for _, _, result in tally.killed]
    own = {*demand.checks, *demand.premise}
    missing: dict[str, str] = {}
    for name in demand.checks:
        noticed = [wrong for wrong in wrongs if name in wrong]
        if not noticed:
            missing[name] = "notices no mutant"
        elif demand.effect is Effect.SOLUTION and all(wrong - own for wrong in noticed):
            missing[name] = "notices no mutant that the older checks miss"
    return missing


def judge(case: Case, tally: Tally, parts: list[TrialResult]) -> GateResult:
    """The gate's answer from all that was judged."""
    judged, killed, apart = len(tally.judged), len(tally.killed), len(tally.apart)
    counted = judged - apart
    bound = lower_bound(killed, counted, CONFIDENCE) if counted else 0.0
    figures = {
        "judged": float(judged),
        "noticed": float(killed),
        "score_at_least": round(bound, 4),
        "program_survivors": float(apart),
        "equivalent": float(tally.equivalent),
        "repeated": float(tally.repeated),
        "without_result": float(tally.without_result),
    }
    matrix = _matrix(tally, parts)
    figures["silent_checks"] = float(sum(row.result == SILENT for row in matrix))
    evidence = [*_survivors(tally), *matrix, *_noticed(tally)]
    score = f"{killed} of {counted} mutants noticed, at least {bound:.0%} with 90 % confidence"
    if apart:
        score += f" ({apart} of program text apart, which may mean the same)"
    if judged < case.config.mutant_count:
        if tally.without_result:
            reason = f"only {judged} mutants gave a result, {tally.without_result} did not"
            return inconclusive(GATE, reason, evidence, **figures)
        reason = f"only {judged} different mutants could be made, {case.config.mutant_count} needed"
        if case.mutation is None and killed == judged:  # a small result is no fault of its tests
            return not_applicable(GATE, f"{reason} to tell; all were noticed", evidence, **figures)
        return failed(GATE, reason, evidence, **figures)
    if bound < LEAST_SCORE:
        kinds = named({mutant.label for mutant, _, _ in tally.survivors}, 3)
        return failed(GATE, f"{score}; not noticed: {kinds}", evidence, **figures)
    unproved = unproved_checks(case, tally, parts)
    if unproved:
        said = "; ".join(f"{name} {why}" for name, why in sorted(unproved.items()))
        return failed(GATE, f"{score}, but {said}", evidence, **figures)
    return passed(GATE, score, evidence, **figures)


def _survivors(tally: Tally) -> list[Evidence]:
    return [
        Evidence(
            label=f"not noticed: {mutant.label}",
            result=say(result),
            last_lines=mutant.diff,
            files=(mutant.path,),
            key=key,
        )
        for mutant, key, result in tally.survivors
    ]


def _matrix(tally: Tally, parts: list[TrialResult]) -> list[Evidence]:
    """Which check notices how many, and how many alone."""
    wrongs = [result.failed_checks for _, _, result in tally.killed]
    wrongs += [result.failed_checks for result in parts]
    names = sorted(tally.checks.union(*wrongs))
    return [Evidence(label=f"check {name}", result=_share(name, wrongs)) for name in names]


def _share(name: str, wrongs: list[frozenset[str]]) -> str:
    """How much one check notices."""
    count, alone = sum(name in w for w in wrongs), sum(w == {name} for w in wrongs)
    return f"notices {count}, {alone} of them alone" if count else SILENT


def _noticed(tally: Tally) -> list[Evidence]:
    return [
        Evidence(
            label=f"noticed: {mutant.label}",
            result=f"by {named(result.failed_checks, MOST_NAMED) or 'the reward alone'}",
            files=(mutant.path,),
            key=key,
        )
        for mutant, key, result in tally.killed
    ]
