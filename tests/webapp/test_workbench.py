"""Sandboxes for roles come from the back-ends that run trials, and reach no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution import execution
from evolution.agents.trimming import Bounds
from evolution.agents.workbench import Bench
from evolution.llm.calls import Role
from evolution.llm.replay import CallMemory
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.choice import ChoosingRunner, SandboxChoice
from sandbox.contracts import ArtifactSpec, Limits, NetworkPolicy, SandboxFile
from sandbox.errors import SandboxUnavailable
from tests.evolution.real_sandbox import orders
from webapp.adapters.workbench import LEAST_MEMORY_BYTES, SandboxWorkbench, with_room


@pytest.mark.bubblewrap
def test_a_sandbox_of_the_environment_is_opened_and_kept(tmp_path: Path) -> None:
    backend = BubblewrapBackend(runtime_dir=tmp_path / "run", cache_dir=tmp_path / "cache")
    runner = ChoosingRunner(
        {SandboxChoice.BUBBLEWRAP: lambda: backend},
        has_engine=lambda: False,
        can_bubblewrap=lambda: True,
        choice=SandboxChoice.BUBBLEWRAP,
    )
    try:
        with SandboxWorkbench(runner, party="a test").open(orders()) as sandbox:
            sandbox.write_files([SandboxFile("x", b"1", 0o755)], "/bundle")
            done = sandbox.exec(
                ["bash", "-c", "head -1 data/orders.csv; ls /solution /tests; ls /sys/class/net"],
                timeout_seconds=20,
                user="root",
            )
            assert done.stdout.splitlines()[0] == b"customer,day,amount"
            assert b"report.py" not in done.stdout
            assert b"eth0" not in done.stdout
            found = sandbox.read_files([ArtifactSpec("/bundle")], cap_bytes=100)
            assert found == (SandboxFile("/bundle/x", b"1", 0o755),)
    finally:
        backend.close()


@pytest.mark.bubblewrap
def test_what_a_model_cannot_write_or_read_is_told_and_breaks_nothing(tmp_path: Path) -> None:
    backend = BubblewrapBackend(runtime_dir=tmp_path / "run", cache_dir=tmp_path / "cache")
    image = backend.prepare(execution.image_spec(orders()))
    sandbox = backend.start(image, Limits(disk_bytes=8 * 1024**2), NetworkPolicy())
    bench = Bench(lambda: sandbox, Role.MODIFIER, "here", Bounds(), CallMemory())
    try:
        said = bench.write("/bundle/" + "x" * 300, b"1", is_executable=False)
        assert said.startswith("cannot be written: ")
        assert "File name too long" in said
        assert "cannot be read: " in bench.read("/proc/1/mem", 1, 10)
        bench.run("dd if=/dev/zero of=/fill bs=1M", 20)
        assert "No space left" in bench.write("/bundle/a", b"x" * 100_000, is_executable=False)
        bench.run("rm /fill", 20)
        assert bench.write("/bundle/a", b"1", is_executable=False) == "/bundle/a has 1 bytes now"
        sandbox.stop()
        with pytest.raises(SandboxUnavailable):
            bench.write("/bundle/b", b"1", is_executable=False)
    finally:
        bench.close()
        backend.close()


def test_the_files_come_on_top_of_the_limits() -> None:
    assert with_room(Limits(), 100).memory_bytes == LEAST_MEMORY_BYTES + 300
    assert with_room(Limits(memory_bytes=2**31), 0).memory_bytes == 2**31
