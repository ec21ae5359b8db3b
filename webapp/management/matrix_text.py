"""The matrix of the gates as plain text: one environment readable, many of them compact."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from evolution.contracts import GateStatus
from evolution.plain_text import plain
from webapp.management.reporting import format_findings, format_table
from webapp.models import GateRecord, Verification
from webapp.selectors.matrix import GateView, MatrixRow, matrix_of

MARKS = {
    GateStatus.PASSED: "✓",
    GateStatus.INCONCLUSIVE: "?",
    GateStatus.NOT_APPLICABLE: "–",
}
LEGEND = (
    "✓ passed  ✗ failed  ! failed, a finding that does not block  ? no answer  – does not apply"
)
EVIDENCE_ROWS = 8
"""Observations that are printed per gate; the page and `--json` have all."""


def format_matrix(verification: Verification) -> str:
    """One environment: every gate with its reason, then the evidence of what has not passed."""
    environment = verification.environment
    rows = matrix_of(environment, verification)
    table = [_line(row) for row in rows]
    parts = [
        f"{environment.name}  (environment {environment.pk}, {environment.short_digest},"
        f" generation {environment.generation})",
        format_table(["", "gate", "s", "reason"], table),
    ]
    parts += [_evidence(row.view) for row in rows if row.view and _complains(row.view.record)]
    return "\n\n".join([*parts, _verdict(verification)])


def _line(row: MatrixRow) -> list[object]:
    if row.view is None:
        return ["", row.gate, "", row.why_not]
    record = row.view.record
    notes = [] if record.is_blocking else ["a finding"] if _complains(record) else []
    notes += [f"as in verification {row.view.asked_in.number}"] if record.is_reused else []
    said = f"  ({', '.join(notes)})" if notes else ""
    return [_mark(record), record.gate, f"{record.seconds:.1f}", plain(record.reason) + said]


def _mark(record: GateRecord) -> str:
    if record.status == GateStatus.FAILED:
        return "✗" if record.is_blocking else "!"
    return MARKS[GateStatus(record.status)]


def _complains(record: GateRecord) -> bool:
    return record.status in (GateStatus.FAILED, GateStatus.INCONCLUSIVE)


def _evidence(view: GateView) -> str:
    """What one gate saw: those observations first that have something to show."""
    record = view.record
    rows = sorted(view.evidence, key=lambda row: not row.get("last_lines"))
    lines = [f"{_mark(record)} {record.gate}: {plain(record.reason)}"]
    for row in rows[:EVIDENCE_ROWS]:
        trial = f"  [trial {row['trial'].pk}]" if row["trial"] else ""
        said = f"{row.get('label', '')}: {row.get('result', '')}"
        lines.append(f"    {plain(said)}{trial}")
        lines += [f"        {line}" for line in _details(row)]
    if len(rows) > EVIDENCE_ROWS:
        lines.append(f"    … and {len(rows) - EVIDENCE_ROWS} more: see the page, or --json")
    return "\n".join(lines)


def _details(row: dict[str, object]) -> Iterator[str]:
    if row.get("command"):
        status = row.get("exit_status")
        ended = "" if status is None else f"   (exit {status})"
        yield "$ " + textwrap.shorten(plain(str(row["command"])), 160, placeholder=" …") + ended
    if row.get("last_lines"):
        yield from ("| " + plain(line)[:160] for line in str(row["last_lines"]).split("\n")[-8:])
    files = row.get("files")
    if isinstance(files, list) and files:
        more = f" and {len(files) - 6} more" if len(files) > 6 else ""
        yield "files: " + ", ".join(plain(str(file)) for file in files[:6]) + more


def _verdict(verification: Verification) -> str:
    parts = [
        f"{verification.verdict or verification.status}: verification {verification.number}",
        "full protocol" if verification.depth == "full" else "quick protocol",
        f"{verification.sandboxes} sandboxes",
        f"{verification.seconds:.1f} s of gates",
        *([verification.backend] if verification.backend else []),
    ]
    return ", ".join(parts)


def format_matrices(rows: Sequence[Verification]) -> str:
    """Many environments: a mark per gate, then all findings, the gravest first."""
    answers = {row.pk: {record.gate: record for record in row.gates.all()} for row in rows}
    gates = list(dict.fromkeys(gate for found in answers.values() for gate in found))
    head = ["id", "digest", "name", *(str(n) for n in range(1, len(gates) + 1)), "verdict", "on"]
    table = [
        [
            *(row.environment_id, row.environment.short_digest, row.environment.name),
            *(_mark(found[gate]) if gate in found else "" for gate in gates),
            *(row.verdict or row.status, row.backend),
        ]
        for row in rows
        for found in [answers[row.pk]]
    ]
    numbered = "  ".join(f"{number} {gate}" for number, gate in enumerate(gates, 1))
    parts = ["\n".join([textwrap.fill(numbered, 100), LEGEND]), format_table(head, table)]
    found = format_findings(Verification.objects.filter(pk__in=[row.pk for row in rows]))
    return "\n\n".join([*parts, found] if found else parts)
