"""Harden the verifier: a step that makes cheating harder and asks nothing more of the work.

For environments whose tests reward cheats, mostly imported ones that are judged where the solver
worked. Forms are tried from the strongest on; the first that proves itself is taken:

- the outputs are carried into a clean sandbox and judged there, only those that the reference
  solution changes; once more with the tests locked;
- where outputs cannot be carried, the tests stay and are locked (`evolution.locking`), with pytest
  from the trusted toolchain where the script lets it be fetched.

Proof, every trial in a fresh sandbox: the reference solution still passes, doing nothing still
fails, every cheat that was rewarded before is refused now, and none is rewarded that was not.
The child raises no difficulty: it has its parent's demands and sequence, and no demand of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from evolution import execution
from evolution.bundle import Bundle, BundleError, with_config
from evolution.carrying import GATE as CARRYING
from evolution.carrying import Search, separated
from evolution.contracts import GateResult, GateStatus, StepConfig, StepEnd, Subject
from evolution.gates import exploits, nop, oracle
from evolution.gates.answers import named
from evolution.gates.case import Case
from evolution.gates.desk import Desk
from evolution.gates.protocol import WORKERS
from evolution.locking import TEST, Lock, locked, locking_refusal
from evolution.ports import TrialLog, TrialRunner
from sandbox.contracts import NetworkMode

NAME = "harden_verifier"
"""What such a revision calls itself where an operator's name would stand."""

_RUNS_PYTEST = re.compile(r"(?m)^(\s*)(?:exec\s+)?(?:python3?\s+-m\s+)?pytest(?=\s)")
_FETCH = """\
curl -LsSf https://astral.sh/uv/install.sh | sh
source "$HOME/.local/bin/env"
"""
_BY_UVX = "uvx -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest"


@dataclass(frozen=True, slots=True)
class Form:
    """One way to harden: in words, and the bundle that it makes."""

    title: str
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Hardening:
    """What came of it. `refused` are the cheats that were rewarded before and no longer are.

    `end` is `accepted` with a child, `exhausted` where none proved itself or none is needed, and
    `inconclusive` where broken machinery stands between. `tried` is one line per form that failed.
    """

    end: StepEnd
    reason: str
    child: Bundle | None = None
    title: str = ""
    refused: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    before: GateResult | None = None
    after: GateResult | None = None


def harden(
    subject: Subject,
    runner: TrialRunner,
    log_for: Callable[[Bundle], TrialLog],
    config: StepConfig,
    *,
    workers: int = WORKERS,
) -> Hardening:
    """Make the child whose tests refuse what the parent's reward, or say in one line why not."""
    with ThreadPoolExecutor(workers, thread_name_prefix="trial") as pool:
        return _Work(subject, runner, log_for, config, pool).run()


@dataclass(slots=True)
class _Work:
    subject: Subject
    runner: TrialRunner
    log_for: Callable[[Bundle], TrialLog]
    config: StepConfig
    pool: Executor
    tried: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def run(self) -> Hardening:
        """Look at the parent, then try the forms."""
        sound, before = self._judged(self.subject.bundle)
        if before is None:
            return self._ended(sound)
        rewarded = rewarded_cheats(before)
        if not rewarded:
            # Only what was rewarded can be refused: a cheat that could not be tried is neither.
            unknown = before.status is GateStatus.INCONCLUSIVE
            end = StepEnd.INCONCLUSIVE if unknown else StepEnd.EXHAUSTED
            said = before.reason if unknown else "no cheat that is known is rewarded here"
            return Hardening(end, said, before=before)
        for form in self._forms():
            sound, after = self._judged(form.bundle)
            said = self._complaint(rewarded, after) if after else sound.reason
            if said or after is None:
                self._note(form, said, after or sound)
                continue
            reason = f"{form.title}: {len(rewarded)} cheats that were rewarded are refused"
            return Hardening(
                StepEnd.ACCEPTED,
                reason,
                child=form.bundle,
                title=form.title,
                refused=rewarded,
                tried=tuple(self.tried),
                before=before,
                after=after,
            )
        end = StepEnd.INCONCLUSIVE if self.faults else StepEnd.EXHAUSTED
        last = (self.faults or self.tried or ["its tests are in no form that can be changed"])[-1]
        return Hardening(end, last, tried=tuple(self.tried), before=before)

    def _ended(self, sound: GateResult) -> Hardening:
        is_machinery = sound.status is GateStatus.INCONCLUSIVE
        end = StepEnd.INCONCLUSIVE if is_machinery else StepEnd.EXHAUSTED
        return Hardening(end, f"the parent, {sound.gate}: {sound.reason}")

    def _note(self, form: Form, said: str, answer: GateResult) -> None:
        line = f"{form.title}: {said}"
        self.tried.append(line)
        if answer.status is GateStatus.INCONCLUSIVE:
            self.faults.append(line)

    def _judged(self, bundle: Bundle) -> tuple[GateResult, GateResult | None]:
        """Oracle and nop, then the cheats; (the gate that did not pass, None) when one did not."""
        case = Case(replace(self.subject, bundle=bundle, oracle=None), self.config)
        desk = Desk(self.runner, self.log_for(bundle), self.pool)
        for gate, check in ((oracle.GATE, oracle.check), (nop.GATE, nop.check)):
            answer = desk.settle({gate: check(case)})[gate]
            if answer.status is not GateStatus.PASSED:
                return answer, None
        found = desk.settle({exploits.GATE: exploits.check(case)})[exploits.GATE]
        return answer, found

    @staticmethod
    def _complaint(rewarded: tuple[str, ...], after: GateResult) -> str:
        """Why this form does not prove itself; empty when it does."""
        still = rewarded_cheats(after)
        if still:
            old = [cheat for cheat in still if cheat in rewarded]
            word = "still rewarded" if old else "newly rewarded"
            return f"{word}: {named(old or still)}"
        return "" if after.status is GateStatus.PASSED else after.reason

    def _forms(self) -> Iterator[Form]:
        """The forms that this bundle allows, the strongest first; each is made when it is due."""
        bundle = self.subject.bundle
        carried = self._carried()
        if carried is not None:
            title = "its outputs are judged in a clean sandbox"
            yield Form(title, carried)
            for lock, form in self._locks(carried):
                yield Form(f"{title}, by {lock} tests", form)
        if execution.task_config(bundle).is_separate:
            return
        fetching = from_toolchain(bundle)
        for start, base in (("pytest comes from the toolchain, ", fetching), ("", bundle)):
            for lock, form in self._locks(base):
                yield Form(f"{start}the tests are {lock}", form)

    @staticmethod
    def _locks(base: Bundle | None) -> Iterator[tuple[str, Bundle]]:
        if base is None or locking_refusal(base):
            return
        seen: set[str] = set()
        for lock, ends in ((Lock.TIGHT, True), (Lock.TIGHT, False), (Lock.LOOSE, True)):
            form = locked(base, lock, ends_processes=ends)
            if form.digest not in seen:
                seen.add(form.digest)
                yield (
                    ("tightly" if lock is Lock.TIGHT else "loosely")
                    + " locked"
                    + ("" if ends else " beside what the solver left running"),
                    form,
                )

    def _carried(self) -> Bundle | None:
        """The bundle judged apart, with just the outputs of its solution; None where it cannot."""
        bare_config = {("artifacts",): None, ("verifier", "environment_mode"): "shared"}
        try:
            bare = with_config(self.subject.bundle, bare_config)
            search = Search(Case(replace(self.subject, bundle=bare), self.config))
            desk = Desk(self.runner, self.log_for(bare), self.pool)
            answer = desk.settle({CARRYING: search.steps()})[CARRYING]
            if search.artifacts:
                return separated(bare, search.artifacts)
        except BundleError as error:
            self.tried.append(f"a clean sandbox: {error}")
            return None
        self.tried.append(f"a clean sandbox: {answer.reason}")
        return None


def rewarded_cheats(answer: GateResult) -> tuple[str, ...]:
    """The cheats that an answer of `exploits` shows as rewarded."""
    return tuple(one.label for one in answer.evidence if one.result.startswith("rewarded"))


def from_toolchain(bundle: Bundle) -> Bundle | None:
    """The bundle with its pytest fetched by uv, which the toolchain stands in for.

    None where that is so already, where no pytest is started, or where the script could not fetch
    anything elsewhere (no public network).
    """
    file = bundle.by_path.get(TEST)
    is_public = execution.network(bundle).mode is NetworkMode.PUBLIC
    if file is None or file.link is not None or not is_public:
        return None
    if execution.preamble(bundle) is not None:
        return None
    try:
        head, _, rest = file.data.decode().partition("\n")
    except UnicodeDecodeError:
        return None
    text, count = _RUNS_PYTEST.subn(rf"\1{_BY_UVX}", rest)
    if not count or "bash" not in head:
        return None
    changed = bundle.with_files([replace(file, data=f"{head}\n{_FETCH}{text}".encode())])
    try:
        found = execution.preamble(changed)
    except BundleError:
        return None
    return changed if found is not None and found.use is not None else None
