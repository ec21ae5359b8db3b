"""The desk: nothing is run twice, broken machinery is tried again, the log is told everything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from evolution.contracts import GateResult, GateStatus
from evolution.gates.answers import passed
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Desk, Steps
from evolution.gates.specs import oracle_asks
from evolution.memory import MemoryLog
from sandbox.contracts import Outcome, TrialResult
from tests.evolution.test_engine import CONFIG
from tests.evolution.toy_world import ToyRunner, toy_subject

ORACLE = oracle_asks(Case(toy_subject(), CONFIG))[0]


@dataclass
class Answered:
    """What a gate of this test was sent."""

    results: list[tuple[TrialResult, ...]] = field(default_factory=list)


def gate(answered: Answered, *batches: tuple[Ask, ...]) -> Steps:
    for batch in batches:
        answered.results.append((yield batch))
    return passed("toy", "done")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def test_two_gates_that_ask_for_the_same_trial_share_it(pool: ThreadPoolExecutor) -> None:
    runner, one, two = ToyRunner(), Answered(), Answered()
    other_name = replace(ORACLE, solver="full")
    answers = Desk(runner, MemoryLog(), pool).settle(
        {"one": gate(one, (ORACLE,)), "two": gate(two, (other_name,))}
    )
    assert list(answers) == ["one", "two"]
    assert one.results == two.results
    assert len(runner.trials) == 1


def test_repetitions_are_trials_of_their_own(pool: ThreadPoolExecutor) -> None:
    runner = ToyRunner()
    asks = tuple(replace(ORACLE, repetition=number) for number in (1, 2, 3))
    Desk(runner, MemoryLog(), pool).settle({"one": gate(Answered(), asks)})
    assert len(runner.trials) == 3


def test_broken_machinery_is_tried_again_and_kept_for_people(pool: ThreadPoolExecutor) -> None:
    log, answered = MemoryLog(), Answered()
    Desk(ToyRunner({"oracle": 2}), log, pool).settle({"one": gate(answered, (ORACLE,))})
    assert answered.results[0][0].outcome is Outcome.PASS
    assert len(log.faults) == 2
    assert len(log.results) == 1


def test_machinery_that_stays_broken_is_handed_to_the_gate(pool: ThreadPoolExecutor) -> None:
    runner, answered = ToyRunner({"oracle": 99}), Answered()
    Desk(runner, MemoryLog(), pool).settle({"one": gate(answered, (ORACLE,))})
    assert answered.results[0][0].outcome is Outcome.INFRA_ERROR
    assert len(runner.trials) == 1 + ORACLE.retries


def test_what_the_log_remembers_is_not_run(pool: ThreadPoolExecutor) -> None:
    log, runner = MemoryLog(), ToyRunner()
    Desk(ToyRunner(), log, pool).settle({"one": gate(Answered(), (ORACLE,))})
    Desk(runner, log, pool).settle({"one": gate(Answered(), (ORACLE,))})
    assert runner.trials == []


def test_a_memory_without_the_wanted_trace_is_run_again(pool: ThreadPoolExecutor) -> None:
    plain = replace(ORACLE, spec=replace(ORACLE.spec, is_traced=False, keep_state=False))
    assert plain.spec.key == ORACLE.spec.key
    log, answered = MemoryLog(), Answered()
    Desk(ToyRunner(), log, pool).settle({"one": gate(Answered(), (plain,))})
    Desk(ToyRunner(), log, pool).settle({"one": gate(answered, (ORACLE,))})
    assert answered.results[0][0].trace is not None
    assert answered.results[0][0].state is not None


def test_more_that_is_wanted_while_the_trial_runs_is_kept(pool: ThreadPoolExecutor) -> None:
    plain = replace(ORACLE, spec=replace(ORACLE.spec, is_traced=False, keep_state=False))
    traced = replace(ORACLE, spec=replace(ORACLE.spec, keep_state=False))
    kept = replace(ORACLE, spec=replace(ORACLE.spec, is_traced=False))
    runner, answered = ToyRunner(), [Answered() for _ in range(3)]
    Desk(runner, MemoryLog(), pool).settle(
        {
            "plain": gate(answered[0], (plain,)),
            "traced": gate(answered[1], (traced,)),
            "kept": gate(answered[2], (kept,)),
        }
    )
    ((of_traced,),), ((of_kept,),) = answered[1].results, answered[2].results
    assert of_traced.trace is not None
    assert of_kept.state is not None
    assert len(runner.trials) == 2, "once as it was asked first, once with all that is wanted"


def test_the_log_is_called_from_one_thread_only(pool: ThreadPoolExecutor) -> None:
    class Watched(MemoryLog):
        def record(
            self, key: str, solver: str, repetition: int, gate: str, result: TrialResult
        ) -> None:
            threads.add(threading.get_ident())
            super().record(key, solver, repetition, gate, result)

    threads: set[int] = set()
    asks = tuple(replace(ORACLE, repetition=number) for number in range(1, 7))
    Desk(ToyRunner(), Watched(), pool).settle({"one": gate(Answered(), asks)})
    assert threads == {threading.get_ident()}


def test_a_runner_that_raises_against_its_contract_is_not_hidden(pool: ThreadPoolExecutor) -> None:
    unknown = replace(
        ORACLE, spec=replace(ORACLE.spec, solver=replace(ORACLE.spec.solver, command="rm -rf /"))
    )
    with pytest.raises(AssertionError, match="cannot run 'rm -rf /'"):
        Desk(ToyRunner(), MemoryLog(), pool).settle({"one": gate(Answered(), (unknown,))})


def test_an_answer_carries_the_seconds_of_its_trials(pool: ThreadPoolExecutor) -> None:
    asks = tuple(replace(ORACLE, repetition=number) for number in (1, 2))
    answers: dict[str, GateResult] = Desk(ToyRunner(), MemoryLog(), pool).settle(
        {"one": gate(Answered(), asks)}
    )
    assert answers["one"].seconds == pytest.approx(0.04)
    assert answers["one"].status is GateStatus.PASSED
