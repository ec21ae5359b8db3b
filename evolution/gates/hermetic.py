"""`hermetic`: does the reference solution earn the same elsewhere, and on another day?

Everything is changed at once first: time zone, locale, home, host name, number of CPUs, the order
in which folders list their files, umask, and no network where one was allowed. Only when that fails
is each change tried alone, twice, to name the one that breaks it; a change under which it only runs
out of time counts when it ends in time without it.
Programs that ask who they run as are run as somebody else with the same rights; those that look at
times of files get files as another checkout brings them. Then solution and tests run 400 days
later; two days later is the control, since where even that fails the clock cannot be moved fairly
here. What could not be tried fairly is told as not tried and holds nothing against the bundle.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace

from evolution import execution
from evolution.bundle import Bundle, BundleError
from evolution.contracts import Evidence, GateResult
from evolution.gates import other_user
from evolution.gates.answers import failed, inconclusive, machinery_fault, observe, passed
from evolution.gates.case import Case
from evolution.gates.clock import MARK, announced, mentions_time, moved_judging, moved_solver
from evolution.gates.desk import MACHINERY, Ask, Steps
from evolution.gates.other_files import NOT_DONE, checked_out, rested
from evolution.gates.programs import (
    asks_file_times,
    asks_user_id,
    lists_folders,
    needs_root,
    switches_user,
)
from evolution.gates.surroundings import UMASK, Change, changes_of, is_root, leaves_modes_open
from sandbox.contracts import (
    SandboxFile,
    SolverEnd,
    TrialResult,
    TrialSpec,
)

GATE = "hermetic"
DAYS = 400
CONTROL_DAYS = 2
AS_IT_IS = 99
"""The repetition of a run without any change, beyond all that are made of the oracle."""

Trials = Generator[tuple[Ask, ...], tuple[TrialResult, ...], "Found"]
Rounds = Generator[tuple[Ask, ...], tuple[TrialResult, ...], None]
_ROOT = re.compile(r"(?i)\b(root|superuser|sudo|(uid|user id) 0)\b")


class Found:
    """What one part of the gate came to."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []
        self.broken: list[str] = []
        self.late: list[str] = []
        self.unknown: list[str] = []
        self.not_tried: list[str] = []

    def see(self, label: str, ask: Ask, result: TrialResult) -> None:
        """Keep a trial for people."""
        self.evidence.append(observe(label, ask, result))

    def leave(self, change: str, why: str) -> None:
        """Tell that a change was not tried, or not so that it says anything."""
        self.not_tried.append(change)
        self.evidence.append(Evidence(label=f"not tried: {change}", result=why))


def check(case: Case) -> Steps:
    """Run the reference solution elsewhere, then on another day."""
    bundle = case.bundle
    try:
        spec = execution.trial_spec(bundle, execution.oracle(bundle))
    except BundleError as error:
        return inconclusive(GATE, f"no reference solution can be run: {error}")
    changes = changes_of(bundle, spec)
    place = yield from _elsewhere(spec, changes)
    yield from _as_another(bundle, spec, place)
    yield from _with_other_files(bundle, spec, place)
    day = yield from _another_day(bundle, spec)
    soft = frozenset() if leaves_modes_open(bundle, _programs(bundle)) else frozenset({UMASK})
    return judge(place, day, len(changes), soft)


def judge(place: Found, day: Found, changes: int, soft: frozenset[str]) -> GateResult:
    """The gate's answer from both parts; what `soft` changes break is reported only."""
    evidence = [*place.evidence, *day.evidence]
    hard = [name for name in (*place.broken, *day.broken, *place.late) if name not in soft]
    notes = [f"fails with {name}" for name in place.broken if name in soft]
    not_tried = [*place.not_tried, *day.not_tried]
    notes += [f"not tried: {change}" for change in not_tried]
    figures = {
        "changes": float(changes + 1),
        "broken_by": float(len(hard)),
        "not_tried": float(len(not_tried)),
    }
    said = f"; {'; '.join(notes)}" if notes else ""
    if hard:
        return failed(GATE, f"breaks with {', '.join(hard)}{said}", evidence, **figures)
    if unknown := [*place.unknown, *day.unknown]:
        return inconclusive(GATE, f"{'; '.join(unknown)}{said}", evidence, **figures)
    reason = f"the same result with {changes} changes of surroundings, and {DAYS} days later"
    return passed(GATE, f"{reason}{said}", evidence, **figures)


# -- elsewhere ----------------------------------------------------------------------------------


def _elsewhere(spec: TrialSpec, changes: dict[str, Change]) -> Trials:
    found = Found()
    all_at_once = spec
    for change in changes.values():
        all_at_once = change(all_at_once)
    ask = Ask(all_at_once, "elsewhere")
    (result,) = yield (ask,)
    found.see("everything changed at once", ask, result)
    if fault := machinery_fault((result,)):
        found.unknown.append(fault)
    elif not result.is_passed:
        yield from _each_alone(spec, changes, found)
    return found


def _each_alone(spec: TrialSpec, changes: dict[str, Change], found: Found) -> Rounds:
    """Find the changes that break it, each seen twice."""
    suspects = list(changes)
    last: dict[str, TrialResult] = {}
    for number in (1, 2):
        asks = tuple(Ask(changes[name](spec), f"elsewhere:{name}", number) for name in suspects)
        results = yield asks
        for name, ask, result in zip(suspects, asks, results, strict=True):
            found.see(f"{name}, run {number}", ask, result)
        last = dict(zip(suspects, results, strict=True))
        if any(result.outcome in MACHINERY for result in results):
            found.unknown.append("the sandbox gave no result for a change alone")
        suspects = [
            name
            for name, result in zip(suspects, results, strict=True)
            if not result.is_passed and result.outcome not in MACHINERY
        ]
        if not suspects:
            break
    late = [name for name in suspects if last[name].solver_end is SolverEnd.TIMEOUT]
    found.broken += [name for name in suspects if name not in late]
    if late:
        yield from _too_slow(spec, late, found)
    elif not suspects and not found.unknown:
        found.unknown.append("fails with everything changed at once, and with no change alone")


def _too_slow(spec: TrialSpec, names: list[str], found: Found) -> Rounds:
    """Whether these changes made it run out of time, or this machine did: it runs once as it is."""
    ask = Ask(spec, "elsewhere:nothing", AS_IT_IS)
    (result,) = yield (ask,)
    found.see("nothing changed, at the same time", ask, result)
    seconds = f"does not end within {spec.solver.timeout_seconds:g} s"
    if result.is_passed:
        found.late += [f"{name} ({seconds})" for name in names]
    else:
        found.unknown.append(f"{seconds} with {', '.join(names)}, nor with nothing changed")


def _as_another(bundle: Bundle, spec: TrialSpec, found: Found) -> Rounds:
    """Another user with the rights of root, where a program asks who it is."""
    for folder, change in (("solution", other_user.solving), ("tests", other_user.judging)):
        if not asks_user_id(_programs(bundle, folder)):
            continue
        name = f"another user for the {folder}"
        if why := _cannot_be_another(bundle, spec, folder):
            found.leave(name, why)
            continue
        results = yield from _twice(change(spec), name, found)
        if results and not other_user.is_there(results[-1]):
            found.leave(name, f"the image has no setpriv, or no user {other_user.SOMEBODY}")
        elif results:
            found.broken.append(name)


def _cannot_be_another(bundle: Bundle, spec: TrialSpec, folder: str) -> str:
    """Why it would say nothing to run as somebody else; empty where it does."""
    programs = _programs(bundle)
    user = spec.solver.user if folder == "solution" else spec.verifier.user
    if not is_root(bundle, user):
        return "they run as somebody of their own"
    if _ROOT.search(bundle.displayed_instruction):
        return "the instruction speaks of root"
    if needs_root(programs) or switches_user(programs):
        return "they call what insists on root, or work for other users, too"
    is_ours = spec.verifier.toolchain is not None or spec.verifier.has_tests_in_image
    return "they are not started by the bundle alone" if folder == "tests" and is_ours else ""


def _with_other_files(bundle: Bundle, spec: TrialSpec, found: Found) -> Rounds:
    """Files with the times of another checkout, and work that has lain for two hours."""
    programs = _programs(bundle)
    if asks_file_times(programs) and spec.solver.user in (None, "root", "0"):
        for is_late in (False, True):
            name = f"other times of files ({'the first' if is_late else 'the last'} one newest)"
            results = yield from _twice(checked_out(spec, is_late=is_late), name, found)
            if results and results[-1].solver_exit_status == NOT_DONE:
                found.leave(name, "no times could be changed there")
            elif results:
                found.broken.append(name)
                break
    tests = _programs(bundle, "tests")
    if not spec.verifier.is_separate and (asks_file_times(tests) or lists_folders(tests)):
        name = "work that is judged two hours later"
        if (yield from _twice(rested(spec), name, found)):
            found.broken.append(name)


def _twice(
    spec: TrialSpec, name: str, found: Found
) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], list[TrialResult]]:
    """The results when it fails twice in a row, else nothing; what says nothing is noted."""
    seen = []
    for number in (1, 2):
        ask = Ask(spec, f"elsewhere:{name}", number)
        (result,) = yield (ask,)
        found.see(f"{name}, run {number}", ask, result)
        if fault := machinery_fault((result,)):
            found.unknown.append(fault)
            return []
        if result.is_passed:
            return []
        seen.append(result)
    if seen[-1].solver_end is SolverEnd.TIMEOUT:
        found.unknown.append(f"does not end in time with {name}")
        return []
    return seen


def _programs(bundle: Bundle, *folders: str) -> list[SandboxFile]:
    """What runs: solution and tests."""
    heads = tuple(f"{folder}/" for folder in folders or ("solution", "tests"))
    return [file for file in bundle.files if file.path.startswith(heads)]


# -- on another day -----------------------------------------------------------------------------


def _another_day(bundle: Bundle, spec: TrialSpec) -> Trials:
    found = Found()
    programs = _programs(bundle)
    (late, is_moved) = yield from _judged_later(spec, DAYS, found)
    if fault := machinery_fault((late,)):
        found.unknown.append(fault)
    elif late.solver_end is SolverEnd.TIMEOUT:
        seconds = spec.solver.timeout_seconds
        found.unknown.append(f"does not end within {seconds:g} s, {DAYS} days later")
    elif late.is_passed:
        if not is_moved and mentions_time(programs):
            found.unknown.append("the clock of the tests cannot be moved here")
    else:
        (soon, _) = yield from _judged_later(spec, CONTROL_DAYS, found)
        if soon.is_passed:
            found.broken.append(f"a clock {DAYS} days later")
        else:
            found.unknown.append(f"fails {CONTROL_DAYS} days later, too: it looks at more than now")
    return found


def _judged_later(
    spec: TrialSpec, days: int, found: Found
) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], tuple[TrialResult, bool]]:
    """Solve and judge with the clock moved; the result, and whether the tests noticed."""
    solver = moved_solver(spec.solver, days)
    ask = Ask(replace(announced(spec), solver=solver, keep_state=True), f"later:{days}")
    (solved,) = yield (ask,)
    is_cut = solved.outcome in MACHINERY or solved.solver_end is SolverEnd.TIMEOUT
    if is_cut or not spec.verifier.is_separate:  # half-done work is not worth judging later
        found.see(f"{days} days later", ask, solved)
        return solved, MARK.encode() in solved.verifier_output
    again = Ask(moved_judging(spec, solved.state or (), days), f"judged_later:{days}")
    (result,) = yield (again,)
    found.see(f"{days} days later", again, result)
    return result, MARK.encode() in result.verifier_output
