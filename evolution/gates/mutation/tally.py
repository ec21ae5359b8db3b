"""What became of the mutants of one environment: noticed or not, the same or a repeat."""

from __future__ import annotations

from dataclasses import dataclass, field

from evolution.gates.desk import MACHINERY, Ask
from evolution.gates.mutation.equivalence import State, effective, is_equivalent, state_key
from evolution.gates.mutation.mutant import Mutant
from evolution.gates.mutation.states import LEFT_BEHIND
from evolution.gates.programs import is_program
from sandbox.contracts import Outcome, SandboxFile, SolverEnd, TrialResult, VerifierSpec


@dataclass(slots=True)
class Tally:
    """What became of the mutants so far."""

    verifier: VerifierSpec
    image: tuple[SandboxFile, ...]
    whole: State
    checks: frozenset[str] = frozenset()
    """The names of all checks, as the reference solution's run reports them."""
    seen: set[str] = field(default_factory=set)
    judged: list[tuple[Mutant, str, TrialResult]] = field(default_factory=list)
    equivalent: int = 0
    repeated: int = 0
    without_result: int = 0
    minds_more: bool = False
    """Whether the tests mind a file that nobody asked for: then more is not the same."""

    def is_new(self, left: tuple[SandboxFile, ...]) -> bool:
        """Whether a state differs from the whole and from all that were seen; counts why not."""
        state = effective(self.verifier, self.image, left)
        is_more = self.minds_more and not state.keys() <= self.whole.keys()
        if is_equivalent(self.whole, state) and not is_more:
            self.equivalent += 1
            return False
        key = state_key(state)
        if key in self.seen:
            self.repeated += 1
            return False
        self.seen.add(key)
        return True

    def add(self, mutant: Mutant, ask: Ask, result: TrialResult) -> None:
        """Note a result; what ends like another one counts once."""
        is_unfinished = result.solver_end is SolverEnd.TIMEOUT
        if result.outcome in MACHINERY or is_unfinished:  # where it stops is chance, on a busy host
            self.without_result += 1
        elif mutant.kind == LEFT_BEHIND and result.is_passed:
            self.equivalent += 1
        elif mutant.files is None or result.state is None or self.is_new(result.state):
            is_minded = mutant.kind == LEFT_BEHIND and result.outcome is Outcome.FAIL
            self.minds_more |= is_minded
            self.judged.append((mutant, ask.key, result))

    @property
    def killed(self) -> list[tuple[Mutant, str, TrialResult]]:
        """The damages that were noticed."""
        return [item for item in self.judged if item[2].outcome is Outcome.FAIL]

    @property
    def survivors(self) -> list[tuple[Mutant, str, TrialResult]]:
        """The damages that were not, or that left the tests without an answer."""
        return [item for item in self.judged if item[2].outcome is not Outcome.FAIL]

    @property
    def apart(self) -> list[tuple[Mutant, str, TrialResult]]:
        """Damages to delivered program text that may leave its meaning as it was: survivors.

        So it is only where other damages to the same file are noticed, and most are elsewhere.
        """
        looked_at = {mutant.path for mutant, _, _ in self.killed if _is_of_program(mutant)}
        if 2 * sum(_is_of_program(mutant) for mutant, _, _ in self.judged) > len(self.judged):
            return []
        return [i for i in self.survivors if _is_of_program(i[0]) and i[0].path in looked_at]


def _is_of_program(mutant: Mutant) -> bool:
    """Whether it is a state with damaged program text."""
    files = {file.path: file.data for file in mutant.state or ()}
    return mutant.state is not None and is_program(mutant.path, files.get(mutant.path, b""))
