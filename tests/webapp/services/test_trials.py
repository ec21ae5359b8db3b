"""Trials are kept whole, whatever names a solution leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from evolution.contracts import GateStatus, Verdict
from sandbox.contracts import Outcome, SandboxFile, Trace, TrialResult, Usage
from tests.webapp.rows import make_seed
from webapp.lifecycle import TrialStatus
from webapp.models import Trial, Verification
from webapp.models.trial import on_host_root
from webapp.services import leases, trials, verifications

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


def _keep(verification: Verification, number: int, **fields: Any) -> None:
    result = TrialResult(**{"outcome": Outcome.FAIL, "rewards": (("reward", 0.0),), **fields})
    trials.record_trial(
        verification, key="k", solver="nop", repetition=number, gate="nop", result=result
    )


def test_what_a_trial_used_stands_beside_its_record() -> None:
    verification = verifications.open_verification(make_seed(), TrialStatus.RUNNING)
    usage = Usage(peak_memory_bytes=5 << 30, cpu_seconds=1.5)
    phases = (("start", 0.1), ("solver", 0.25))
    _keep(verification, 1, usage=usage, phases=phases, trace=Trace(), backend="docker")
    _keep(verification, 2)
    first, second = Trial.objects.order_by("repetition")
    assert (first.solver_seconds, first.cpu_seconds, first.is_traced) == (0.25, 1.5, True)
    assert first.peak_memory_bytes == 5 << 30
    assert (second.solver_seconds, second.cpu_seconds, second.is_traced) == (None, None, False)


@pytest.mark.parametrize(
    ("counted", "spoiled", "expected", "is_on_image"),
    [
        (["docker", "docker"], ["bubblewrap"], "docker", True),
        (["docker", "bubblewrap-image"], [], "bubblewrap-image, docker", True),
        (["docker", "bubblewrap-image", "bubblewrap"], [], None, False),
        ([], ["docker"], "docker", True),
        ([], [""], "", None),
    ],
)
def test_a_verdict_names_what_ran_the_trials_that_count(
    counted: list[str], spoiled: list[str], expected: str | None, is_on_image: bool | None
) -> None:
    seed = make_seed(is_valid=False)
    verification = verifications.open_verification(seed, TrialStatus.QUEUED)
    assert leases.claim(verification)
    for number, name in enumerate(counted):
        _keep(verification, number, backend=name)
    for number, name in enumerate(spoiled):
        _keep(verification, number, backend=name, outcome=Outcome.INFRA_ERROR, rewards=())
    verifications.record_verdict(verification, Verdict(GateStatus.PASSED, ()))
    verification.refresh_from_db()
    names = expected if expected is not None else "bubblewrap, bubblewrap-image, docker"
    assert (verification.backend, verification.is_on_image) == (names, is_on_image)
    on_host = Verification.objects.filter(on_host_root())
    assert on_host.exists() is (is_on_image is False)
