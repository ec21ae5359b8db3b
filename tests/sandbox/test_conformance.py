"""Every back-end passes the conformance suite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.backends.fake import FakeBackend, FakeCommand, ScriptExhausted
from tests.sandbox import conformance
from tests.sandbox.conformance import Bench


@pytest.mark.parametrize("case", conformance.PROTOCOL, ids=lambda case: case.__name__)
def test_fake(case: Callable[[Bench], None]) -> None:
    backend: list[FakeBackend] = []

    def with_script(script: object) -> FakeBackend:
        if script or not backend:
            backend[:] = [FakeBackend(script)]  # type: ignore[arg-type]
        return backend[0]

    case(Bench(with_script))


def test_the_fake_fails_by_name_when_its_script_runs_out() -> None:
    with Bench(FakeBackend).start(script=[FakeCommand(expects="first")]) as sandbox:
        assert conformance.sh(sandbox, "first thing").exit_status == 0
        with pytest.raises(ScriptExhausted, match="second thing"):
            conformance.sh(sandbox, "second thing")


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    "case", conformance.PROTOCOL + conformance.REAL, ids=lambda case: case.__name__
)
def test_bubblewrap(case: Callable[[Bench], None], bench: Bench) -> None:
    case(bench)
