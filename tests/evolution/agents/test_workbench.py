"""What a role leaves in its sandbox is read back within bounds; paths stay where they may be."""

from __future__ import annotations

import pytest
from pydantic_ai import ModelRetry

from evolution import execution
from evolution.agents.hands import decoded, placed
from evolution.agents.trimming import Bounds
from evolution.agents.workbench import (
    CHANGED_BYTES,
    READ_BACK_BYTES,
    Bench,
    DraftError,
    laid_out,
    size_complaint,
)
from evolution.llm.calls import Role
from evolution.llm.replay import CallMemory
from sandbox.backends.fake import FakeBackend, FakeCommand
from sandbox.base import Sandbox
from sandbox.contracts import Limits, NetworkPolicy, SandboxFile
from tests.evolution.sample_bundles import sample_bundle


def bench(*script: FakeCommand, log: CallMemory | None = None) -> tuple[Bench, FakeBackend]:
    """A bench of the sample bundle whose commands follow a script."""
    backend, bundle = FakeBackend(script), sample_bundle()

    def start() -> Sandbox:
        image = backend.prepare(execution.image_spec(bundle))
        return laid_out(backend.start(image, Limits(), NetworkPolicy()), bundle)

    return Bench(start, Role.MODIFIER, "here/tools", Bounds(), log), backend


def test_only_what_changed_is_handed_over() -> None:
    files = (
        SandboxFile("/bundle/tests/test.sh", b"#!/bin/bash\n", 0o755),
        SandboxFile("/bundle/solution/link", link="solve.sh"),
        SandboxFile("/bundle/solution/__pycache__/x.pyc", b"x"),
        SandboxFile("/naive/solve.sh", b"exit 0\n", 0o755),
        SandboxFile("/etc/elsewhere", b"x"),
    )
    made, _ = bench(FakeCommand(writes=files, removes=("/bundle/environment/data/in.txt",)))
    made.run("change it", 10)
    draft = made.draft()
    assert [file.path for file in draft.changed] == ["solution/link", "tests/test.sh"]
    assert draft.removed == ("environment/data/in.txt",)
    assert draft.naive == (SandboxFile("solve.sh", b"exit 0\n", 0o755),)
    assert made.draft() == draft


def test_a_draft_that_changes_too_much_is_refused() -> None:
    huge = SandboxFile("/bundle/environment/data/huge", b"x" * (CHANGED_BYTES + 1))
    made, _ = bench(FakeCommand(writes=(huge,)))
    made.run("make it huge", 10)
    with pytest.raises(DraftError, match="bytes were changed"):
        made.draft()


def test_what_is_on_record_is_done_again_only_when_more_is_wanted() -> None:
    log = CallMemory()
    first, _ = bench(FakeCommand(stdout=b"one"), FakeCommand(stdout=b"two"), log=log)
    said = [first.run("a", 5), first.run("b", 5)]
    again, backend = bench(FakeCommand(stdout=b"another one"), FakeCommand(), log=log)
    assert [again.run("a", 5), again.run("b", 5)] == said
    assert backend.started == 0
    assert again.draft() == first.draft()
    other, backend = bench(*[FakeCommand(stdout=b"later")] * 3, log=log)
    assert [other.run("a", 5), other.run("b", 5)] == said
    assert "later" in other.run("c", 5).text
    assert [command[-1] for command in backend.commands] == ["a", "b", "c"]
    other.close()
    assert backend.stopped == 1


def test_commands_are_shown_as_they_ended() -> None:
    made, _ = bench(
        FakeCommand(exit_status=3, stdout=b"out\n", stderr=b"\x1b[31mwrong\x1b[0m"),
        FakeCommand(timed_out=True),
        FakeCommand(stdout=b"y" * 1_000_000),
    )
    assert "exit status 3\n[data output" in made.run("x", 5).text
    assert "did not end within 5 s" in made.run("x", 5).text
    assert len(made.run("x", 5).text) < 9000


def test_paths_and_contents_are_taken_as_they_are_meant() -> None:
    assert placed("solution/../../etc/x", "/bundle") == "/etc/x"
    assert placed("./tests/a", "/bundle") == "/bundle/tests/a"
    assert decoded("AAE=", "base64") == b"\0\1"
    for content, encoding in (("?", "base64"), ("x" * 1_000_001, "utf-8"), ("\ud800", "utf-8")):
        with pytest.raises(ModelRetry):
            decoded(content, encoding)
    with pytest.raises(ModelRetry):
        placed("a\0b", "/bundle")


def test_a_bundle_that_is_too_large_is_refused_before_anything_is_opened() -> None:
    big = sample_bundle(SandboxFile("environment/data/big", b"x" * (READ_BACK_BYTES + 1)))
    assert "are the most to be worked on" in (size_complaint(big) or "")
    assert size_complaint(sample_bundle()) is None
