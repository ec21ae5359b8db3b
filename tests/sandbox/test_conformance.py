"""Every back-end passes the conformance suite."""

from __future__ import annotations

import pytest

from sandbox.backends.fake import FakeBackend, FakeCommand, ScriptExhausted
from tests.sandbox import conformance
from tests.sandbox.conformance import Bench
from tests.sandbox.kinds import KINDS, Check, each_of

ALL = conformance.PROTOCOL + conformance.REAL


@pytest.mark.parametrize("check", each_of(conformance.PROTOCOL))
def test_fake(check: Check) -> None:
    backend: list[FakeBackend] = []

    def with_script(script: object) -> FakeBackend:
        if script or not backend:
            backend[:] = [FakeBackend(script)]  # type: ignore[arg-type]
        return backend[0]

    check(Bench(with_script, "fake"))


def test_the_fake_fails_by_name_when_its_script_runs_out() -> None:
    with Bench(FakeBackend, "fake").start(script=[FakeCommand(expects="first")]) as sandbox:
        assert conformance.sh(sandbox, "first thing").exit_status == 0
        with pytest.raises(ScriptExhausted, match="second thing"):
            conformance.sh(sandbox, "second thing")


def test_the_suite_does_not_shrink() -> None:
    assert len({check.__name__ for check in ALL}) == len(ALL) >= 94


@KINDS
@pytest.mark.parametrize("check", each_of(ALL))
def test_back_end(check: Check, any_bench: Bench) -> None:
    check(any_bench)
