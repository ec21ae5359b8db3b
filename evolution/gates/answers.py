"""How gates say what they saw: one plain line, and evidence that a person can read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from evolution.contracts import Evidence, GateResult, GateStatus
from evolution.gates.desk import MACHINERY, Ask
from evolution.gates.versions import version_of
from evolution.plain_text import plain
from sandbox.contracts import Outcome, SolverEnd, TrialResult

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
LAST_LINES = 12
LINE_CHARACTERS = 300

ENDS = {
    SolverEnd.TIMEOUT: "ended by its time-out",
    SolverEnd.OUT_OF_MEMORY: "ended by its memory limit",
    SolverEnd.QUOTA: "hindered by its limit on disk, processes or open files",
}


def last_lines(output: bytes, count: int = LAST_LINES) -> str:
    """The last lines of some output as plain text: no escapes, no controls, nothing over-long."""
    text = _CONTROL.sub("", _ESCAPES.sub("", output.decode("utf-8", "replace")))
    lines = [line[:LINE_CHARACTERS] for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-count:])


def named(names: Iterable[str], most: int = 6) -> str:
    """Names in order, joined by commas, the tail counted instead of listed."""
    ordered = sorted(names)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more


def say(result: TrialResult) -> str:
    """What a trial came to, in a few words."""
    parts = []
    if result.solver_end is not SolverEnd.DONE:
        parts.append(f"solution {ENDS[result.solver_end]}")
    if result.outcome in MACHINERY:
        parts.append(f"no result, the machinery broke: {result.error or result.outcome.value}")
    elif result.outcome is Outcome.INVALID_REWARD:
        parts.append(f"no usable reward: {result.error or 'none was written'}")
    else:
        parts.append(f"reward {result.reward:g}" if result.reward is not None else "no reward")
        if failed := result.failed_checks:
            parts.append(f"failed: {named(failed)}")
    return "; ".join(parts)


def observe(label: str, ask: Ask, result: TrialResult, files: Iterable[str] = ()) -> Evidence:
    """A trial as evidence. Its output is added only where it did not earn full reward."""
    command = ask.spec.solver.command or ""
    if ask.spec.state is not None:
        command = "(no solver: the state is judged as it is)"
    output = ""
    if not result.is_passed:
        halves = (
            ("solver", last_lines(result.solver_output)),
            ("verifier", last_lines(result.verifier_output)),
        )
        output = "\n".join(f"[{name}]\n{text}" for name, text in halves if text)
    return Evidence(
        label=label,
        result=say(result),
        command=command,
        exit_status=result.solver_exit_status,
        last_lines=output,
        files=tuple(files),
        key=ask.key,
    )


def answer(
    gate: str,
    status: GateStatus,
    reason: str,
    evidence: Sequence[Evidence] = (),
    **figures: float,
) -> GateResult:
    """A gate's answer. Whether it blocks is decided by the protocol."""
    return GateResult(
        gate=gate,
        version=version_of(gate),
        status=status,
        reason=plain(reason),
        evidence=tuple(map(_readable, evidence)),
        figures=tuple(figures.items()),
    )


def _readable(evidence: Evidence) -> Evidence:
    """Names of files and checks come from sandboxes: any bytes may be in them."""
    files = tuple(map(plain, evidence.files))
    return replace(
        evidence, label=plain(evidence.label), result=plain(evidence.result), files=files
    )


def passed(
    gate: str, reason: str, evidence: Sequence[Evidence] = (), **figures: float
) -> GateResult:
    """The gate's question is answered well."""
    return answer(gate, GateStatus.PASSED, reason, evidence, **figures)


def failed(
    gate: str, reason: str, evidence: Sequence[Evidence] = (), **figures: float
) -> GateResult:
    """The bundle is at fault."""
    return answer(gate, GateStatus.FAILED, reason, evidence, **figures)


def inconclusive(
    gate: str, reason: str, evidence: Sequence[Evidence] = (), **figures: float
) -> GateResult:
    """Nothing can be said, through no fault of the bundle that is known."""
    return answer(gate, GateStatus.INCONCLUSIVE, reason, evidence, **figures)


def not_applicable(
    gate: str, reason: str, evidence: Sequence[Evidence] = (), **figures: float
) -> GateResult:
    """The question does not arise here."""
    return answer(gate, GateStatus.NOT_APPLICABLE, reason, evidence, **figures)


def machinery_fault(results: Iterable[TrialResult]) -> str | None:
    """One line on the first result that says nothing about the bundle, or None."""
    for result in results:
        if result.outcome in MACHINERY:
            return f"the sandbox gave no result: {result.error or result.outcome.value}"
    return None
