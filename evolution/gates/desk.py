"""The desk where gates ask for trials: from memory, from the log, or run in a fresh sandbox.

Gates are generators: they yield the trials that they need and are sent the results. So they hold
no threads, no clock and no log, and several of them share one pool. Everything but the runner is
called from the thread that called `settle`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from functools import cached_property

from evolution.contracts import GateResult
from evolution.ports import TrialLog, TrialRunner
from sandbox.contracts import Outcome, SolverEnd, TrialResult, TrialSpec

MACHINERY = frozenset({Outcome.INFRA_ERROR, Outcome.CANCELLED})
"""Outcomes that say nothing about the bundle."""
TRIED = "tried before: "
"""How the notes of a result without an answer begin that tell what broke in earlier tries."""


@dataclass(frozen=True)
class Ask:
    """One trial that a gate needs. `solver` and `repetition` name it for people and for the log.

    Machinery that breaks is tried again `retries` times, then handed to the gate as it is.
    """

    spec: TrialSpec
    solver: str
    repetition: int = 1
    retries: int = 2

    @cached_property
    def slot(self) -> tuple[str, int]:
        """What makes two asks the same trial, whoever asks and however they call it."""
        return self.spec.key, self.repetition

    @property
    def key(self) -> str:
        """The trial's key; see `TrialSpec.key`."""
        return self.slot[0]

    def brings(self, other: Ask) -> bool:
        """Whether a run of this ask brings the state and the trace that another one wants."""
        has_state = self.spec.keep_state or not other.spec.keep_state
        return has_state and (self.spec.is_traced or not other.spec.is_traced)

    def with_wants_of(self, other: Ask) -> Ask:
        """This ask, which also brings what another one of the same trial wants."""
        spec = replace(
            self.spec,
            keep_state=self.spec.keep_state or other.spec.keep_state,
            is_traced=self.spec.is_traced or other.spec.is_traced,
        )
        return replace(self, spec=spec)

    def is_met_by(self, result: TrialResult) -> bool:
        """Whether an earlier result also holds the state and the trace that are wanted here."""
        if result.outcome in MACHINERY:
            return True
        lacks_state = self.spec.keep_state and result.state is None
        lacks_trace = self.spec.is_traced and result.trace is None
        return not (lacks_state or lacks_trace)


Steps = Generator[tuple[Ask, ...], tuple[TrialResult, ...], GateResult]
"""A gate at work."""


@dataclass(slots=True)
class _Gate:
    steps: Steps
    asks: tuple[Ask, ...] = ()
    seconds: float = 0.0


@dataclass(slots=True)
class _Running:
    ask: Ask
    gate: str
    faults: tuple[str, ...] = ()
    """What broke in the tries before this one."""

    richer: Ask | None = None
    """The same trial, asked for meanwhile with more to be kept than this run keeps."""


@dataclass(slots=True)
class Desk:
    """Answers the gates of one verification; no trial is run twice in it."""

    runner: TrialRunner
    log: TrialLog
    pool: Executor
    known: dict[tuple[str, int], TrialResult] = field(default_factory=dict)
    _running: dict[Future[TrialResult], _Running] = field(default_factory=dict)

    def settle(self, gates: Mapping[str, Steps]) -> dict[str, GateResult]:
        """Work these gates to their ends, side by side. The answers are in the order of `gates`."""
        open_gates = {name: _Gate(steps) for name, steps in gates.items()}
        answers: dict[str, GateResult] = {}
        try:
            for name in gates:
                self._advance(name, open_gates, answers, is_new=True)
            while open_gates:
                self._collect(open_gates)
                for name in list(open_gates):
                    self._advance(name, open_gates, answers, is_new=False)
        finally:
            for future in self._running:
                future.cancel()
            self._running.clear()
        return {name: answers[name] for name in gates}

    def rests_on_a_time_out(self, answer: GateResult) -> bool:
        """Whether solver or tests ran out of time in a trial that the answer shows as evidence.

        A trial whose tests did not end is one without a result.
        """
        shown = {evidence.key for evidence in answer.evidence}
        return any(
            key in shown and (r.solver_end is SolverEnd.TIMEOUT or r.outcome in MACHINERY)
            for (key, _), r in self.known.items()
        )

    def _advance(
        self, name: str, gates: dict[str, _Gate], answers: dict[str, GateResult], *, is_new: bool
    ) -> None:
        """Move one gate on for as long as its asks are answered."""
        gate = gates[name]
        while is_new or all(ask.slot in self.known for ask in gate.asks):
            try:
                if is_new:
                    gate.asks, is_new = next(gate.steps), False
                else:
                    results = tuple(self.known[ask.slot] for ask in gate.asks)
                    gate.asks = gate.steps.send(results)
            except StopIteration as end:
                answer: GateResult = end.value
                answers[name] = replace(answer, seconds=round(gate.seconds, 3))
                del gates[name]
                return
            for ask in gate.asks:
                self._request(ask, name, gate)

    def _request(self, ask: Ask, name: str, gate: _Gate) -> None:
        known = self.known.get(ask.slot)
        if known is not None and ask.is_met_by(known):
            return
        for running in self._running.values():
            if running.ask.slot == ask.slot:
                if not running.ask.brings(ask):
                    running.richer = ask.with_wants_of(running.richer or running.ask)
                return
        recalled = self.log.recall(ask.key, ask.solver, ask.repetition)
        if recalled is not None and ask.is_met_by(recalled):
            self.known[ask.slot] = recalled
            gate.seconds += recalled.seconds
            return
        self.known.pop(ask.slot, None)
        self._submit(_Running(ask, name))

    def _submit(self, running: _Running) -> None:
        self._running[self.pool.submit(self.runner.run, running.ask.spec)] = running

    def _collect(self, gates: dict[str, _Gate]) -> None:
        """Wait for the next trials that end; record them; try broken machinery again."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        for future in done:
            running = self._running.pop(future)
            result, ask = future.result(), running.ask
            self.log.record(ask.key, ask.solver, ask.repetition, running.gate, result)
            gates[running.gate].seconds += result.seconds
            if result.outcome is Outcome.INFRA_ERROR and len(running.faults) < ask.retries:
                self._submit(replace(running, faults=(*running.faults, f"{TRIED}{result.error}")))
            elif running.richer is not None and not running.richer.is_met_by(result):
                self._submit(_Running(running.richer, running.gate))
            elif result.outcome in MACHINERY:
                self.known[ask.slot] = replace(result, notes=(*result.notes, *running.faults))
            else:
                self.known[ask.slot] = result
