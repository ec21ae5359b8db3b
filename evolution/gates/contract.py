"""`contract`: is everything that the tests insist on stated, or to be found?

A name (of a file, a column, a key) is asked for without being stated when the tests compare with
it, the result of the reference solution is laid out by it, the reference solution knows it by
heart, and neither the instruction nor anything in the image says it. All four have to hold: what
only comes out of the data is found by working. Fixed words inside a result are reported and do not
count: they may belong to a format that everybody knows.
Nor may the instruction call a result by another path than the tests read.
"""

from __future__ import annotations

import re

from evolution.bundle import Bundle
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed as failing
from evolution.gates.answers import inconclusive, machinery_fault, named, not_applicable
from evolution.gates.answers import passed as passing
from evolution.gates.case import Case
from evolution.gates.desk import Steps
from evolution.gates.specs import nop_asks, oracle_asks
from evolution.gates.stated_paths import misnamed
from evolution.gates.wording import Told, asserted_words, state_words, structure_words, words_of
from sandbox.contracts import SandboxFile, Trace, TrialResult

GATE = "contract"
_WRITTEN_SPACE = re.compile(r"\\+[ntr]")
_FILE_NAME = re.compile(r"\w[\w-]*\.[a-z][a-z0-9]{1,4}")


def check(case: Case) -> Steps:
    """Compare words of the tests with what the solver gets; the oracle's run is known already."""
    results = yield oracle_asks(case)[0], nop_asks(case)[0]
    if fault := machinery_fault(results):
        return inconclusive(GATE, fault)
    return judge(case.bundle, *results)


def judge(bundle: Bundle, oracle: TrialResult, nop: TrialResult) -> GateResult:
    """The gate's answer from what the reference solution left."""
    made = _made(oracle.state or (), nop.state or ())
    if pairs := misnamed(bundle, made, oracle.trace):
        evidence = [Evidence(label=said, result=f"the tests read {path}") for said, path in pairs]
        reason = f"the instruction says {pairs[0][0]}, the tests read {pairs[0][1]}"
        return failing(GATE, reason, evidence, misnamed=float(len(pairs)))
    asserted = asserted_words(bundle)
    if not asserted:
        return not_applicable(GATE, "the tests compare with nothing that could be read")
    trace = oracle.trace
    told = Told(bundle, trace.read if trace is not None else ())
    unread = _read_by(trace, told.unread)
    known = words_of(_solution_text(bundle))
    if made:
        wanted = asserted & known & state_words(made)
    else:
        wanted = {word for word in asserted & known if _FILE_NAME.fullmatch(word)}
    silent = sorted(word for word in wanted if not told.has(word))
    layout = structure_words(made) if made else wanted
    unstated = [word for word in silent if word in layout]
    figures = {"asked_for": float(len(wanted)), "unstated": float(len(unstated))}
    evidence = [Evidence(label=word, result=_where(bundle, word, made)) for word in silent]
    evidence += [
        Evidence(label="could not be read", result=place) for place in sorted(set(unread))[:5]
    ]
    if not unstated:
        reason = f"all {len(wanted)} names that the tests insist on are stated or to be found"
        return passing(GATE, reason, evidence, **figures)
    said = f"{named(unstated)}: asked for by the tests, neither stated nor to be found"
    if unread:
        maybe = f"it may lie in {named(set(unread), 2)}, which could not be read"
        if trace is None or trace.is_blind:
            reason = f"{said}; {maybe}, and what the solution read is not known"
            return inconclusive(GATE, reason, evidence, **figures)
        return passing(GATE, f"{said}; {maybe}", evidence, **figures)
    return failing(GATE, said, evidence, **figures)


def _read_by(trace: Trace | None, places: list[str]) -> list[str]:
    """Of these places the ones that the solution opened; all where that is not known."""
    if trace is None or trace.is_blind:
        return places
    opened = {path.rsplit("/", 1)[-1] for path in trace.read}
    return [p for p in places if p.partition(" → ")[0].rsplit("/", 1)[-1] in opened]


def _made(
    state: tuple[SandboxFile, ...], before: tuple[SandboxFile, ...]
) -> tuple[SandboxFile, ...]:
    """What the solution made or changed."""
    old = {(file.path, file.digest) for file in before}
    return tuple(file for file in state if (file.path, file.digest) not in old)


def _solution_text(bundle: Bundle) -> str:
    """The programs of the solution; written line ends and tabs are no part of a word."""
    texts = (
        file.data.decode("utf-8", "replace")
        for file in bundle.folder("solution")
        if file.link is None and b"\0" not in file.data
    )
    return _WRITTEN_SPACE.sub(" ", "\n".join(texts))


def _where(bundle: Bundle, word: str, state: tuple[SandboxFile, ...]) -> str:
    """Where the tests, the solution and the result have the word."""
    places = [f.path for f in bundle.files if f.path.startswith(("tests/", "solution/"))]
    holders = [p for p in places if word in bundle.by_path[p].data.decode(errors="replace").lower()]
    left = [f.path for f in state if word in f"{f.path}\n{f.data.decode(errors='replace')}".lower()]
    return f"in {named(holders, 4)}; in the result: {named(left, 3) or 'not known'}"
