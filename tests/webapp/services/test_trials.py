"""Trials are kept whole, whatever names a solution leaves behind."""

from __future__ import annotations

import pytest

from sandbox.contracts import Outcome, SandboxFile, TrialResult
from tests.webapp.rows import make_seed
from webapp.lifecycle import TrialStatus
from webapp.models import Trial
from webapp.services import trials, verifications

pytestmark = pytest.mark.django_db

LATIN_NAME = b"caf\xe9".decode(errors="surrogateescape")


def test_a_file_whose_name_is_no_utf8_is_recalled_as_it_was() -> None:
    verification = verifications.open_verification(make_seed(), TrialStatus.RUNNING)
    result = TrialResult(
        Outcome.INFRA_ERROR,
        state=(SandboxFile(LATIN_NAME, b"\0\xff"), SandboxFile("plain \U0001f600", b"x")),
        error=f"cannot take {LATIN_NAME}\0\x1b[31m",
    )
    assert trials.record_trial(
        verification, key="k", solver="oracle", repetition=1, gate="oracle", result=result
    )
    row = Trial.objects.get()
    assert row.error == "cannot take caf\\udce9\\x00\\x1b[31m"
    assert trials.unpack_result(bytes(row.record)) == result
