"""`hermetic`: does the reference solution earn the same elsewhere, and on another day?

Everything is changed at once first: time zone, locale, home, number of CPUs, umask, and no network
where one was allowed. Only when that fails is each change tried alone, twice, to name the one that
breaks it; a change under which it only runs out of time counts when it ends in time without it.
Then solution and tests run 400 days later; two days later is the control, since where
even that fails the clock cannot be moved fairly here. Programs that ask who they run as are run as
somebody else. What could not be tried fairly, above all another host name, which no back-end gives,
is told as not tried and holds nothing against the bundle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import replace

from evolution import execution
from evolution.bundle import Bundle, BundleError
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed, inconclusive, machinery_fault, observe, passed
from evolution.gates.case import Case
from evolution.gates.clock import MARK, announced, mentions_time, moved_judging, moved_solver
from evolution.gates.desk import MACHINERY, Ask, Steps
from evolution.gates.programs import asks_host_name, asks_user_id
from sandbox.contracts import (
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
    SolverEnd,
    TrialResult,
    TrialSpec,
)

GATE = "hermetic"
DAYS = 400
CONTROL_DAYS = 2
SOFT = frozenset({"umask"})
"""Changes that no solver meets: what they break is reported and does not count."""

SOMEBODY = "nobody"
"""Whom a solution runs as that asks who it is; every image has him."""

AS_IT_IS = 99
"""The repetition of a run without any change, beyond all that are made of the oracle."""

Change = Callable[[TrialSpec], TrialSpec]
Trials = Generator[tuple[Ask, ...], tuple[TrialResult, ...], "Found"]
_SETS = re.compile(r"(?im)^\s*ENV\s+(?:.*\s)?(TZ|LC_ALL|LANG|HOME)[= ]")
_USER = re.compile(r"(?im)^\s*USER\s")


class Found:
    """What one part of the gate came to."""

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []
        self.broken: list[str] = []
        self.notes: list[str] = []
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
    day = yield from _another_day(bundle, spec)
    return judge(place, day, len(changes))


def judge(place: Found, day: Found, changes: int) -> GateResult:
    """The gate's answer from both parts."""
    evidence = [*place.evidence, *day.evidence]
    hard = [name for name in (*place.broken, *day.broken) if name not in SOFT] + place.late
    notes = [*place.notes, *day.notes]
    notes += [f"fails with another {name}" for name in place.broken if name in SOFT]
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


def changes_of(bundle: Bundle, spec: TrialSpec) -> dict[str, Change]:
    """The changes that are fair here, by name; what the bundle sets itself is left as it is."""
    dockerfile = bundle.by_path.get("environment/Dockerfile")
    text = dockerfile.data.decode(errors="replace") if dockerfile is not None else ""
    own = {name.upper() for name in _SETS.findall(text)}
    own |= {name for name, _ in (*spec.image.env, *spec.solver.env, *spec.verifier.env)}
    changes: dict[str, Change] = {}
    if "TZ" not in own:
        changes["another time zone"] = lambda s: _with_env(s, TZ="RKT-13:45")
    if not own & {"LC_ALL", "LANG"}:
        changes["another locale"] = lambda s: _with_env(s, LC_ALL="C.UTF-8", LANG="C.UTF-8")
    if "HOME" not in own:
        changes["another home"] = lambda s: _with_env(s, HOME="/var/tmp")  # noqa: S108
    changes["another number of CPUs"] = _other_cpus
    if not _USER.search(text) and spec.solver.user is None and spec.verifier.user is None:
        changes["umask"] = _other_umask
    if spec.network.mode is not NetworkMode.NO_NETWORK:
        changes["no network"] = lambda s: replace(s, network=NetworkPolicy())
    return changes


def _with_env(spec: TrialSpec, **values: str) -> TrialSpec:
    def merged(env: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted({**dict(env), **values}.items()))

    return replace(
        spec,
        solver=replace(spec.solver, env=merged(spec.solver.env)),
        verifier=replace(spec.verifier, env=merged(spec.verifier.env)),
    )


def _other_cpus(spec: TrialSpec) -> TrialSpec:
    cpus = 2.0 if (spec.limits.cpus or 2.0) < 2.0 else 1.0
    return replace(spec, limits=replace(spec.limits, cpus=cpus))


def _other_umask(spec: TrialSpec) -> TrialSpec:
    command = f"umask 0002 && exec {spec.solver.command}"
    return replace(spec, solver=replace(spec.solver, command=command))


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


def _each_alone(
    spec: TrialSpec, changes: dict[str, Change], found: Found
) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], None]:
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


def _too_slow(
    spec: TrialSpec, names: list[str], found: Found
) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], None]:
    """Whether these changes made it run out of time, or this machine did: it runs once as it is."""
    ask = Ask(spec, "elsewhere:nothing", AS_IT_IS)
    (result,) = yield (ask,)
    found.see("nothing changed, at the same time", ask, result)
    seconds = f"does not end within {spec.solver.timeout_seconds:g} s"
    if result.is_passed:
        found.late += [f"{name} ({seconds})" for name in names if name not in SOFT]
    else:
        found.unknown.append(f"{seconds} with {', '.join(names)}, nor with nothing changed")


def _as_another(
    bundle: Bundle, spec: TrialSpec, found: Found
) -> Generator[tuple[Ask, ...], tuple[TrialResult, ...], None]:
    """Another host name and another user, where a program asks for them.

    Another user may lack rights, so that only success tells something: what fails as another one
    counts as not tried.
    """
    programs = _programs(bundle)
    if asks_host_name(programs):
        why = "its programs ask for the name of the host, which is always the same here"
        found.leave("another host name", why)
    if not asks_user_id(programs):
        return
    if spec.solver.user not in (None, "root", "0"):
        why = "its programs ask who they run as, and run as somebody of their own"
        found.leave("another user", why)
        return
    ask = Ask(replace(spec, solver=replace(spec.solver, user=SOMEBODY)), "elsewhere:another user")
    (result,) = yield (ask,)
    found.see("another user", ask, result)
    if fault := machinery_fault((result,)):
        found.unknown.append(fault)
    elif not result.is_passed:
        why = f"its programs ask who they run as, and it fails as {SOMEBODY}, rights or not"
        found.leave("another user with the same rights", why)


def _programs(bundle: Bundle) -> list[SandboxFile]:
    """What runs: solution and tests."""
    return [file for file in bundle.files if file.path.startswith(("solution/", "tests/"))]


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
