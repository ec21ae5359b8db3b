"""What the roles are told of an environment: bounded, in a fixed order, foreign text quoted."""

from __future__ import annotations

from collections.abc import Iterable

from evolution.agents.trimming import Bounds, cut_middle, quoted
from evolution.bundle import Bundle
from evolution.contracts import Demand, Evidence, GateResult, GateStatus, Plan, Subject, Verdict
from evolution.directions import Aspect, Direction
from evolution.sequence import Sequence
from sandbox.contracts import SandboxFile

MOST_DEMANDS = 40
MOST_EVIDENCE = 6
_FIRST_FOLDERS = ("solution/", "tests/", "environment/")


def environment(subject: Subject, bounds: Bounds) -> str:
    """The parent as every role gets it: instruction, sequence, live demands, files, solution."""
    bundle = subject.bundle
    parts = [
        f"## The environment (generation {subject.generation})",
        quoted("instruction.md", bundle.instruction, bounds.file),
        "### Its sequence",
        numbered(subject.sequence),
        "### Its live demands",
        lineage(subject.demands, bounds),
        "### Its files",
        listing(bundle, bounds),
        quoted("task.toml", _data(bundle, "task.toml"), bounds.listing),
        "### Its reference solution",
        contents(bundle, "solution/", bounds.brief // 4, bounds),
    ]
    return cut_middle("\n\n".join(parts), bounds.brief)


def numbered(sequence: Sequence) -> str:
    """A sequence with the indexes that edits use."""
    rows = (
        f"{at}. scenario: {pair.scenario} | skill: {pair.skill}" for at, pair in enumerate(sequence)
    )
    return quoted("sequence", "\n".join(rows), 8000)


def lineage(demands: tuple[Demand, ...], bounds: Bounds) -> str:
    """The demands in the order of their birth; of a long lineage the oldest and the newest."""
    if not demands:
        return "None: it is a seed."
    rows = [
        f"- {demand.id} ({demand.direction.value} x {demand.aspect.value},"
        f" effect {demand.effect.value}): {demand.title}. Checks: {', '.join(demand.checks)}"
        for demand in demands
    ]
    if len(rows) > MOST_DEMANDS:
        half = MOST_DEMANDS // 2
        rows = [*rows[:half], f"- (… {len(rows) - 2 * half} more …)", *rows[-half:]]
    return quoted("demands", "\n".join(rows), bounds.listing * 2)


def used_cells(demands: Iterable[Demand]) -> str:
    """Which cells of the grid the lineage has used, and which it has not."""
    used = {(demand.direction, demand.aspect) for demand in demands}
    free = [
        f"{direction.value} x {aspect.value}"
        for direction in Direction
        for aspect in Aspect
        if (direction, aspect) not in used
    ]
    return f"Cells of the grid that the lineage has not used: {', '.join(free) or 'none'}."


def listing(bundle: Bundle, bounds: Bounds) -> str:
    """The paths of a bundle with sizes."""
    rows = [_row(file) for file in bundle.files]
    return quoted("files: bytes, path", "\n".join(rows), bounds.listing)


def _row(file: SandboxFile) -> str:
    return f"{len(file.data):>9} {file.path}" + (f" -> {file.link}" if file.link else "")


def contents(bundle: Bundle, head: str, most: int, bounds: Bounds) -> str:
    """The texts of the files below a folder, the smallest first, until the room is used up."""
    files = [f for f in bundle.files if f.path.startswith(head) and f.link is None]
    parts: list[str] = []
    for file in sorted(files, key=lambda one: (len(one.data), one.path)):
        if b"\0" in file.data[:4096]:
            continue
        text = quoted(file.path, file.data, bounds.file)
        if len(text) > most:
            parts.append(f"(no room for {file.path} and larger ones)")
            break
        most -= len(text)
        parts.append(text)
    return "\n\n".join(parts) or "(none)"


def _data(bundle: Bundle, path: str) -> bytes:
    file = bundle.by_path.get(path)
    return file.data if file is not None else b"(missing)"


def plan_text(plan: Plan, subject: Subject, bounds: Bounds) -> str:
    """A plan for who reviews or builds it."""
    edits = "\n".join(
        f"- {part.kind.value} at {part.index}: scenario: {part.pair.scenario}"
        f" | skill: {part.pair.skill}"
        for part in plan.edit.parts
    )
    body = (
        f"direction: {plan.direction.value}\naspect: {plan.aspect.value}\n"
        f"effort: {plan.effort.value}\neffect: {plan.effect.value}\noperator: {plan.operator}\n"
        f"edits of the sequence:\n{edits}\nsummary: {plan.summary}\nwhy: {plan.why}\n"
        f"details:\n{plan.details}"
    )
    return f"## The plan\n\n{quoted('plan', body, bounds.file)}"


def evidence_text(verdict: Verdict, bounds: Bounds) -> str:
    """What the gates said, the blocking failures first and in full, the passed ones by name."""
    order = (GateStatus.FAILED, GateStatus.INCONCLUSIVE)
    parts = ["## What the gates said"]
    for status in order:
        parts += [_gate(gate, bounds) for gate in verdict.gates if gate.status is status]
    passed = [gate.gate for gate in verdict.gates if gate.status is GateStatus.PASSED]
    parts.append(f"Passed: {', '.join(passed) or 'none'}.")
    return cut_middle("\n\n".join(parts), bounds.brief // 2)


def _gate(gate: GateResult, bounds: Bounds) -> str:
    kept = sorted(gate.evidence, key=_weight)[:MOST_EVIDENCE]
    rows = [gate.reason, *(_observation(one) for one in kept)]
    more = len(gate.evidence) - len(kept)
    if more > 0:
        rows.append(f"(and {more} more observations)")
    word = "blocks" if gate.is_blocking else "is a finding only"
    name = f"gate {gate.gate}: {gate.status.value}, {word}"
    return quoted(name, "\n".join(rows), bounds.result)


def _weight(evidence: Evidence) -> int:
    """What shows a failure comes before what shows that something went well."""
    if evidence.label.startswith("not noticed") or evidence.result == "notices none":
        return 0
    if evidence.label.startswith("noticed:") or evidence.result.startswith("reward 1"):
        return 2
    return 0 if evidence.last_lines or "fail" in evidence.result else 1


def _observation(evidence: Evidence) -> str:
    row = f"- {evidence.label}: {evidence.result}"
    if evidence.exit_status not in (None, 0):
        row += f" (exit status {evidence.exit_status})"
    if evidence.files:
        row += f" [{', '.join(evidence.files[:5])}]"
    return f"{row}\n{evidence.last_lines}" if evidence.last_lines else row


def findings_text(findings: tuple[str, ...], bounds: Bounds) -> str:
    """What was found wrong with earlier plans of this direction, the latest last."""
    if not findings:
        return ""
    body = "\n".join(f"- {line}" for line in findings[-12:])
    return f"## Findings on what was planned before\n\n{quoted('findings', body, bounds.file)}"


def subject_files(bundle: Bundle, bounds: Bounds) -> str:
    """All texts of a bundle, folder by folder, as far as there is room."""
    share = bounds.brief // 4
    return "\n\n".join(contents(bundle, head, share, bounds) for head in _FIRST_FOLDERS)


def plainly(value: object) -> str:
    """A value of a configuration in one line."""
    return quoted("value", repr(value), 2000)
