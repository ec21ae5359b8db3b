"""What `verify` prints: one environment readable, many compact, and the evidence of failures."""

from __future__ import annotations

import pytest

from tests.webapp import builders
from webapp.lifecycle import VerificationStatus
from webapp.management.matrix_text import format_matrices, format_matrix
from webapp.models import GateRecord, Verification

pytestmark = pytest.mark.django_db


def verified(index: int, status: VerificationStatus = VerificationStatus.VALID) -> Verification:
    seed = builders.make_seed(index)
    seed.verification = status
    seed.save(update_fields=["verification"])
    return builders.add_verification(seed)


def test_one_environment_is_told_gate_by_gate_with_the_evidence_of_failures() -> None:
    verification = verified(0, VerificationStatus.INVALID)
    GateRecord.objects.filter(verification=verification, gate="oracle").update(
        status="inconclusive", reason="the sandbox \x1b[31mgave\nno result"
    )
    text = format_matrix(verification)
    lines = text.splitlines()
    assert any(line.startswith("✓  nop") for line in lines)
    assert any(line.startswith("✗  mutants") and "19 of 20" in line for line in lines)
    assert any("headroom" in line and "an earlier gate ended it" in line for line in lines)
    assert "? oracle: the sandbox \\x1b[31mgave\\nno result" in text
    trial = verification.trials.get(gate="oracle", repetition=1)
    assert f"oracle, run 1: reward 1, every check passed  [trial {trial.pk}]" in text
    assert "$ bash /solution/solve.sh   (exit 0)" in text
    assert "| report.csv written" in text
    assert "files: /app/out/report.csv" in text
    assert lines[-1].startswith("failed: verification 1, quick protocol, 41 sandboxes")
    assert "\x1b" not in text


def test_many_are_a_mark_per_gate_and_their_findings_by_severity() -> None:
    whole, leaky, broken = verified(0), verified(1), verified(2, VerificationStatus.INVALID)
    GateRecord.objects.filter(verification=leaky, gate="headroom").update(
        gate="leak", status="failed", is_blocking=False, reason="a copy of the solution"
    )
    text = format_matrices([whole, leaky, broken])
    assert "1 format" in text.splitlines()[0]
    rows = {line.split()[2]: line for line in text.splitlines() if " ratchet/" in line[:40]}
    assert "✗" not in rows["ratchet/nginx-log-forensics"]
    assert "!" in rows["ratchet/broken-backup-script"]
    assert "✗" in rows["ratchet/archive-carving"]
    order = [text.index("blocking failure"), text.index("leak or exploit")]
    assert order == sorted(order)
    assert max(len(line) for line in text.splitlines()) < 200
